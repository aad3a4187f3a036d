// The front door of stock HDFS clients: names, attributes, what readers ask, and what is refused.

#include <limits>
#include <optional>

#include <gmock/gmock.h>

#include "tests/namenode/hadoop_fixture.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

class HadoopDoorTest : public ::testing::Test, protected HadoopFixture {
 protected:
  explicit HadoopDoorTest(const ClientService::Options& options = {}) : HadoopFixture(3, options) {}

  static hdfs::RenameRequestProto Move(const std::string& from, const std::string& to) {
    hdfs::RenameRequestProto request;
    request.set_src(from);
    request.set_dst(to);
    return request;
  }
  static hdfs::Rename2RequestProto Rename2(const std::string& from, const std::string& to, bool overwrite) {
    hdfs::Rename2RequestProto request;
    request.set_src(from);
    request.set_dst(to);
    request.set_overwritedest(overwrite);
    return request;
  }
  static hdfs::DeleteRequestProto Remove(const std::string& path, bool recursive) {
    hdfs::DeleteRequestProto request;
    request.set_src(path);
    request.set_recursive(recursive);
    return request;
  }
  hdfs::GetListingResponseProto List(const std::string& path, const std::string& after = "", bool with_locations = false) {
    hdfs::GetListingRequestProto request;
    request.set_src(path);
    request.set_startafter(after);
    request.set_needlocation(with_locations);
    return Ask<hdfs::GetListingResponseProto>("getListing", request);
  }
  std::vector<std::string> NamesIn(const std::string& path) {
    std::vector<std::string> names;
    const hdfs::GetListingResponseProto listed = List(path);
    for (const auto& entry : listed.dirlist().partiallisting()) names.push_back(entry.path());
    return names;
  }
};

// Permissions count. The root is root's, who runs the NameNode.
class HadoopDoorWithPermissions : public HadoopDoorTest {
 protected:
  HadoopDoorWithPermissions() : HadoopDoorTest(Options(&groups_)) {}

  static ClientService::Options Options(GroupMapping* groups) {
    ClientService::Options options;
    options.limits.permissions_enabled = true;
    options.superuser = "root";
    options.groups = groups;
    return options;
  }

  GroupMapping groups_{{}, [](const std::string&) { return std::vector<std::string>(); }, &process_->clock()};
};

TEST_F(HadoopDoorTest, MissingPathsAreNoErrorWhereHdfsAnswersNull) {
  EXPECT_FALSE(StatusOf("/none").has_fs());
  EXPECT_FALSE(List("/none").has_dirlist());
  WriteFile("/file");
  EXPECT_FALSE(StatusOf("/file/below").has_fs());
  EXPECT_EQ(ExceptionOf("isFileClosed", Path("/none")), "FileNotFoundException");
  EXPECT_EQ(ExceptionOf("getContentSummary", Path("/none")), "FileNotFoundException");
  EXPECT_EQ(ExceptionOf("getPreferredBlockSize", Path("/none")), "FileNotFoundException");
}

TEST_F(HadoopDoorTest, AStatusHasAllThatClientsUnwrap) {
  ASSERT_TRUE(Mkdirs("/d"));
  WriteFile("/d/f", 1000);
  const hdfs::HdfsFileStatusProto file = StatusOf("/d/f").fs();
  EXPECT_EQ(file.filetype(), hdfs::HdfsFileStatusProto::IS_FILE);
  EXPECT_EQ(file.path(), "");
  EXPECT_EQ(file.length(), 1000u);
  EXPECT_EQ(file.permission().perm(), 0644u);
  EXPECT_EQ(file.owner(), "root");
  EXPECT_TRUE(file.has_block_replication() && file.has_blocksize() && file.has_flags());
  EXPECT_EQ(file.block_replication(), 3u);
  EXPECT_EQ(file.blocksize(), uint64_t{1} << 20);
  EXPECT_EQ(file.childrennum(), 0);
  const hdfs::HdfsFileStatusProto directory = StatusOf("/d").fs();
  EXPECT_EQ(directory.filetype(), hdfs::HdfsFileStatusProto::IS_DIR);
  EXPECT_EQ(directory.length(), 0u);
  EXPECT_TRUE(directory.has_block_replication() && directory.has_blocksize());
  EXPECT_EQ(directory.childrennum(), 1);
  EXPECT_GE(directory.fileid(), 16386u);
  EXPECT_NE(directory.fileid(), file.fileid());
  EXPECT_TRUE(AskBool("isFileClosed", Path("/d/f")));
}

TEST_F(HadoopDoorTest, AFileIsListedAsItselfWithoutAName) {
  WriteFile("/d/d", 10);
  EXPECT_THAT(NamesIn("/d"), ElementsAre("d"));
  EXPECT_THAT(NamesIn("/d/d"), ElementsAre(""));
  EXPECT_THAT(NamesIn("/"), ElementsAre("d"));
  const hdfs::GetListingResponseProto located = List("/d/d", "", true);
  ASSERT_EQ(located.dirlist().partiallisting_size(), 1);
  EXPECT_EQ(located.dirlist().partiallisting(0).locations().blocks_size(), 1);
}

TEST_F(HadoopDoorTest, ListingsComeInPagesAndWithLocations) {
  ASSERT_TRUE(Mkdirs("/d/a"));
  WriteFile("/d/b", 10);
  WriteFile("/d/c");
  EXPECT_THAT(NamesIn("/d"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(List("/d", "a").dirlist().partiallisting(0).path(), "b");
  EXPECT_EQ(List("/d", "aa").dirlist().partiallisting_size(), 2);
  EXPECT_TRUE(List("/d", "c").has_dirlist());
  EXPECT_EQ(List("/d", "c").dirlist().partiallisting_size(), 0);
  EXPECT_EQ(List("/d").dirlist().remainingentries(), 0u);
  const hdfs::DirectoryListingProto located = List("/d", "", true).dirlist();
  EXPECT_FALSE(located.partiallisting(0).has_locations());
  ASSERT_EQ(located.partiallisting(1).locations().blocks_size(), 1);
  EXPECT_EQ(located.partiallisting(1).locations().blocks(0).locs_size(), 3);
  EXPECT_TRUE(located.partiallisting(2).has_locations());
  EXPECT_EQ(located.partiallisting(2).locations().blocks_size(), 0);
}

TEST_F(HadoopDoorTest, ALargeDirectoryIsNeverShownAsEndedBeforeItsEnd) {
  for (int i = 0; i < 1001; ++i) ASSERT_TRUE(Mkdirs(fmt::format("/d/{:04}", i)));
  const hdfs::DirectoryListingProto first = List("/d").dirlist();
  EXPECT_EQ(first.partiallisting_size(), 1000);
  EXPECT_GT(first.remainingentries(), 0u);
  const hdfs::DirectoryListingProto second = List("/d", first.partiallisting(999).path()).dirlist();
  EXPECT_EQ(second.partiallisting_size(), 1);
  EXPECT_EQ(second.remainingentries(), 0u);
}

TEST_F(HadoopDoorTest, LocationsOfClosedFilesHaveTheLastBlockWhateverTheRange) {
  const uint64_t file = Ask<hdfs::FileStatusResponseProto>("create", Create("/f")).fs().fileid();
  hdfs::ExtendedBlockProto first = Ask<hdfs::LocatedBlockResponseProto>("addBlock", AddBlock("/f", file, nullptr)).block().b();
  first.set_numbytes(1 << 20);
  hdfs::ExtendedBlockProto second = Ask<hdfs::LocatedBlockResponseProto>("addBlock", AddBlock("/f", file, &first)).block().b();
  second.set_numbytes(7);
  ASSERT_TRUE(AskBool("complete", Complete("/f", file, &second)));

  for (const auto& [offset, length, blocks] : {std::tuple<uint64_t, uint64_t, int>{0, kNone / 2, 2},
                                               {0, 1, 1},
                                               {1 << 20, 1, 1},
                                               {(1 << 20) + 7, 10, 0},
                                               {kNone, kNone, 0},
                                               {0, kNone, 2}}) {
    const hdfs::LocatedBlocksProto located = LocationsOf("/f", offset, length);
    EXPECT_EQ(located.blocks_size(), blocks) << offset;
    EXPECT_EQ(located.filelength(), (1u << 20) + 7);
    EXPECT_FALSE(located.underconstruction());
    EXPECT_TRUE(located.islastblockcomplete());
    EXPECT_EQ(located.lastblock().b().blockid(), second.blockid());
    EXPECT_EQ(located.lastblock().offset(), uint64_t{1} << 20);
    EXPECT_EQ(located.lastblock().locs_size(), 3);
    EXPECT_EQ(located.lastblock().storageids_size(), 3);
    EXPECT_EQ(located.lastblock().storagetypes_size(), 3);
    EXPECT_TRUE(located.lastblock().has_blocktoken());
    EXPECT_EQ(located.lastblock().blocktoken().identifier(), "");
  }
  EXPECT_EQ(Ask<hdfs::FileStatusResponseProto>("getLocatedFileInfo", Path("/f")).fs().locations().blocks_size(), 2);
  WriteFile("/empty");
  const hdfs::LocatedBlocksProto empty = LocationsOf("/empty", 0, 1000);
  EXPECT_FALSE(empty.has_lastblock());
  EXPECT_EQ(empty.filelength(), 0u);
  EXPECT_EQ(ExceptionOf("getBlockLocations",
                        [] {
                          hdfs::GetBlockLocationsRequestProto request;
                          request.set_src("/");
                          request.set_offset(0);
                          request.set_length(1);
                          return request;
                        }()),
            "FileNotFoundException");
}

TEST_F(HadoopDoorTest, AFileOfMoreBlocksThanOneNativeAnswerHasIsLocatedWhole) {
  constexpr int kBlocks = 1003;
  ASSERT_TRUE(Mkdirs("/d"));
  WriteFile("/d/a", 10);
  const uint64_t file = Ask<hdfs::FileStatusResponseProto>("create", Create("/d/big")).fs().fileid();
  std::optional<hdfs::ExtendedBlockProto> last;
  for (int i = 0; i < kBlocks; ++i) {
    last = Ask<hdfs::LocatedBlockResponseProto>("addBlock", AddBlock("/d/big", file, last ? &*last : nullptr)).block().b();
    last->set_numbytes(1 << 20);
  }
  ASSERT_TRUE(AskBool("complete", Complete("/d/big", file, &*last)));
  WriteFile("/d/c", 10);

  const hdfs::LocatedBlocksProto whole = LocationsOf("/d/big", 0, kNone / 2);
  ASSERT_EQ(whole.blocks_size(), kBlocks);
  for (int i = 0; i < kBlocks; ++i) EXPECT_EQ(whole.blocks(i).offset(), static_cast<uint64_t>(i) << 20);
  EXPECT_EQ(whole.lastblock().b().blockid(), last->blockid());
  EXPECT_EQ(LocationsOf("/d/big", 1 << 20, uint64_t{1001} << 20).blocks_size(), 1001) << "the range's end is kept";
  EXPECT_EQ(Ask<hdfs::FileStatusResponseProto>("getLocatedFileInfo", Path("/d/big")).fs().locations().blocks_size(), kBlocks);

  // A listing shows a file with all of its blocks, or on the next page.
  const hdfs::DirectoryListingProto first = List("/d", "", true).dirlist();
  ASSERT_EQ(first.partiallisting_size(), 1);
  EXPECT_EQ(first.partiallisting(0).locations().blocks_size(), 1);
  EXPECT_GT(first.remainingentries(), 0u);
  const hdfs::DirectoryListingProto second = List("/d", "a", true).dirlist();
  ASSERT_EQ(second.partiallisting_size(), 1);
  EXPECT_EQ(second.partiallisting(0).path(), "big");
  EXPECT_EQ(second.partiallisting(0).locations().blocks_size(), kBlocks);
  EXPECT_GT(second.remainingentries(), 0u);
  const hdfs::DirectoryListingProto third = List("/d", "big", true).dirlist();
  ASSERT_EQ(third.partiallisting_size(), 1);
  EXPECT_EQ(third.remainingentries(), 0u);
  const hdfs::DirectoryListingProto itself = List("/d/big", "", true).dirlist();
  ASSERT_EQ(itself.partiallisting_size(), 1);
  EXPECT_EQ(itself.partiallisting(0).locations().blocks_size(), kBlocks);
  EXPECT_EQ(itself.remainingentries(), 0u);
}

TEST_F(HadoopDoorTest, BadBlocksAreFoundByTheirNodesIfTheirStoragesAreNotNamed) {
  WriteFile("/f", 10);
  hdfs::ReportBadBlocksRequestProto request;
  *request.add_blocks() = LocationsOf("/f", 0, 1).blocks(0);
  hdfs::LocatedBlockProto& bad = *request.mutable_blocks(0);
  bad.mutable_locs()->DeleteSubrange(1, 2);
  const std::string storage = bad.storageids(0);
  bad.clear_storageids();
  Ask<hdfs::EmptyProto>("reportBadBlocks", request);
  const std::string expected = fmt::format("{}@{}", bad.b().blockid(), storage);
  EXPECT_THAT(replicas_.bad, ElementsAre(expected));
  bad.add_storageids(storage);
  Ask<hdfs::EmptyProto>("reportBadBlocks", request);
  EXPECT_THAT(replicas_.bad, ElementsAre(expected, expected));
  bad.mutable_b()->set_blockid(16 << 20);
  bad.clear_storageids();
  Ask<hdfs::EmptyProto>("reportBadBlocks", request);
  EXPECT_EQ(replicas_.bad.size(), 2u) << "of no block that is known";
}

TEST_F(HadoopDoorWithPermissions, TheOldRenameGoesIntoADirectoryWhoseParentMayNotBeWritten) {
  WriteFile("/in/a");
  WriteFile("/b");
  ASSERT_TRUE(Mkdirs("/open"));
  hdfs::SetPermissionRequestProto mode;
  mode.mutable_permission()->set_perm(0777);
  for (const char* path : {"/in", "/open"}) {
    mode.set_src(path);
    Ask<hdfs::EmptyProto>("setPermission", mode);
  }
  const auto rename_as = [this](const std::string& user, const std::string& from, const std::string& to) {
    ipc::Call call = NewCall("rename", Move(from, to));
    call.client_id = "fedcba9876543210";
    return Send(std::move(call), user);
  };
  const ipc::Answer refused = rename_as("bob", "/in/a", "/b");
  ASSERT_TRUE(std::holds_alternative<ipc::Failure>(refused));
  EXPECT_THAT(std::get<ipc::Failure>(refused).exception, HasSubstr("AccessControlException"));
  EXPECT_TRUE(std::holds_alternative<std::string>(rename_as("bob", "/in/a", "/open")));
  EXPECT_TRUE(Exists("/open/a"));
  EXPECT_FALSE(Exists("/in/a"));
}

TEST_F(HadoopDoorTest, TheOldRenameGoesIntoDirectoriesAndSaysNoWithoutAnException) {
  WriteFile("/a");
  WriteFile("/b");
  ASSERT_TRUE(Mkdirs("/d"));
  EXPECT_FALSE(AskBool("rename", Move("/none", "/x")));
  EXPECT_FALSE(AskBool("rename", Move("/a", "/b")));
  EXPECT_FALSE(AskBool("rename", Move("/a", "/no/parent")));
  EXPECT_FALSE(AskBool("rename", Move("/", "/x")));
  EXPECT_FALSE(AskBool("rename", Move("/d", "/d/below")));
  EXPECT_TRUE(AskBool("rename", Move("/a", "/a")));
  EXPECT_FALSE(AskBool("rename", Move("/d", "/d")));
  EXPECT_TRUE(AskBool("rename", Move("/a", "/d")));
  EXPECT_TRUE(Exists("/d/a"));
  EXPECT_TRUE(AskBool("rename", Move("/d/a", "/")));
  EXPECT_TRUE(Exists("/a"));
  ASSERT_TRUE(AskBool("rename", Move("/a", "/d/")));
  WriteFile("/a");
  EXPECT_FALSE(AskBool("rename", Move("/a", "/d"))) << "a file of that name is there";
  EXPECT_TRUE(AskBool("rename", Move("/d", "/e")));
  EXPECT_TRUE(Exists("/e/a"));
  EXPECT_EQ(ExceptionOf("rename", Move("/b", "/a/x")), "ParentNotDirectoryException");
  EXPECT_EQ(ExceptionOf("rename", Move("/b", "not/absolute")), "InvalidPathException");
}

TEST_F(HadoopDoorTest, ARenameThatIsSentAgainActsOnce) {
  ASSERT_TRUE(Mkdirs("/a"));
  ASSERT_TRUE(Mkdirs("/d"));
  // To a new name: a second one would go into what it made.
  EXPECT_TRUE(AskBool("rename", Move("/a", "/b"), 900));
  EXPECT_TRUE(AskBool("rename", Move("/a", "/b"), 900, 1));
  EXPECT_TRUE(Exists("/b"));
  // Into a directory.
  EXPECT_TRUE(AskBool("rename", Move("/b", "/d"), 901));
  EXPECT_TRUE(AskBool("rename", Move("/b", "/d"), 901, 1));
  EXPECT_TRUE(Exists("/d/b"));
  // Of what never acted the second try acts.
  EXPECT_TRUE(AskBool("rename", Move("/d/b", "/c"), 902, 1));
  EXPECT_TRUE(Exists("/c"));
}

TEST_F(HadoopDoorTest, Rename2ThrowsWhatHdfsThrows) {
  WriteFile("/a");
  WriteFile("/b");
  ASSERT_TRUE(Mkdirs("/d"));
  ASSERT_TRUE(Mkdirs("/full/x"));
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/none", "/x", false)), "FileNotFoundException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/a", "/b", false)), "FileAlreadyExistsException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/a", "/a", false)), "FileAlreadyExistsException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/a", "/no/parent", false)), "FileNotFoundException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/a", "/b/x", false)), "ParentNotDirectoryException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/a", "/d", true)), "IOException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/d", "/full", true)), "IOException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/d", "/d/x", false)), "IOException");
  EXPECT_EQ(ExceptionOf("rename2", Rename2("/a", "/b", true)), "none");
  EXPECT_FALSE(Exists("/a"));
}

TEST_F(HadoopDoorTest, DeleteAnswersWhetherThereWasSomething) {
  ASSERT_TRUE(Mkdirs("/d/e"));
  EXPECT_FALSE(AskBool("delete", Remove("/none", true)));
  EXPECT_FALSE(AskBool("delete", Remove("/", true)));
  EXPECT_EQ(ExceptionOf("delete", Remove("/d", false)), "PathIsNotEmptyDirectoryException");
  EXPECT_TRUE(AskBool("delete", Remove("/d", true), 500));
  EXPECT_TRUE(AskBool("delete", Remove("/d", true), 500, 1)) << "the answer of the first is lost";
  EXPECT_FALSE(AskBool("delete", Remove("/d", true)));
}

TEST_F(HadoopDoorTest, AFirstTryThatWasOvertakenByLaterCallsStillActs) {
  ASSERT_TRUE(Mkdirs("/a"));
  ASSERT_TRUE(Mkdirs("/b"));
  // The same retry slot, a later number in it.
  EXPECT_TRUE(AskBool("delete", Remove("/a", true), 3 + 1024));
  EXPECT_TRUE(AskBool("delete", Remove("/b", true), 3));
  EXPECT_FALSE(Exists("/b"));
  // Whether a repetition has acted cannot be told any more.
  EXPECT_THAT(std::get<ipc::Failure>(Send("delete", Remove("/c", true), 3, 1)).message, HasSubstr("the slot has gone on"));
}

TEST_F(HadoopDoorTest, CallsWithoutAClientIdAreAnswered) {
  ipc::Call call = NewCall("delete", Remove("/none", true), 0);
  call.client_id.clear();
  EXPECT_TRUE(std::holds_alternative<std::string>(HadoopFixture::Send(std::move(call))));
}

TEST_F(HadoopDoorTest, AttributesAreSetAndLeftAsHdfsCodesThem) {
  WriteFile("/f", 10);
  hdfs::SetPermissionRequestProto mode;
  mode.set_src("/f");
  mode.mutable_permission()->set_perm(01600);
  Ask<hdfs::EmptyProto>("setPermission", mode);
  hdfs::SetTimesRequestProto times;
  times.set_src("/f");
  times.set_mtime(1234);
  times.set_atime(kNone);
  Ask<hdfs::EmptyProto>("setTimes", times);
  hdfs::SetOwnerRequestProto owner;
  owner.set_src("/f");
  owner.set_groupname("people");
  EXPECT_EQ(ExceptionOf("setOwner", owner), "AccessControlException") << "not a group of his";
  owner.clear_groupname();
  owner.set_username("root");
  Ask<hdfs::EmptyProto>("setOwner", owner);
  const hdfs::HdfsFileStatusProto status = StatusOf("/f").fs();
  EXPECT_EQ(status.permission().perm(), 01600u);
  EXPECT_EQ(status.modification_time(), 1234u);
  EXPECT_NE(status.access_time(), kNone);
  EXPECT_EQ(status.owner(), "root");
  mode.set_src("/none");
  EXPECT_EQ(ExceptionOf("setPermission", mode), "FileNotFoundException");

  hdfs::SetReplicationRequestProto replication;
  replication.set_src("/f");
  replication.set_replication(2);
  EXPECT_TRUE(AskBool("setReplication", replication));
  replication.set_replication(100'000);
  EXPECT_EQ(ExceptionOf("setReplication", replication), "IOException");
  for (const char* other : {"/", "/none"}) {
    replication.set_src(other);
    replication.set_replication(2);
    EXPECT_FALSE(AskBool("setReplication", replication)) << other;
  }
}

TEST_F(HadoopDoorTest, QuotasKeepResetAndShowTheirCodes) {
  ASSERT_TRUE(Mkdirs("/d"));
  const auto summary = [this] { return Ask<hdfs::GetContentSummaryResponseProto>("getContentSummary", Path("/d")).summary(); };
  EXPECT_EQ(summary().quota(), kNone);
  EXPECT_EQ(summary().spacequota(), kNone);
  hdfs::SetQuotaRequestProto quota;
  quota.set_path("/d");
  quota.set_namespacequota(1);
  quota.set_storagespacequota(kNone >> 1);
  Ask<hdfs::EmptyProto>("setQuota", quota);
  EXPECT_EQ(summary().quota(), 1u);
  EXPECT_EQ(summary().spacequota(), kNone);
  EXPECT_EQ(summary().directorycount(), 1u);
  EXPECT_EQ(Ask<hdfs::GetQuotaUsageResponseProto>("getQuotaUsage", Path("/d")).usage().fileanddirectorycount(), 1u);
  EXPECT_EQ(ExceptionOf("create", Create("/d/f")), "NSQuotaExceededException");
  quota.set_namespacequota(kNone);
  Ask<hdfs::EmptyProto>("setQuota", quota);
  EXPECT_EQ(ExceptionOf("create", Create("/d/f")), "none");
}

TEST_F(HadoopDoorTest, XattrsGoByTheirNameSpace) {
  WriteFile("/f");
  hdfs::SetXAttrRequestProto set;
  set.set_src("/f");
  set.mutable_xattr()->set_namespace_(hdfs::XAttrProto::USER);
  set.mutable_xattr()->set_name("colour");
  set.mutable_xattr()->set_value("red");
  set.set_flag(1);
  Ask<hdfs::EmptyProto>("setXAttr", set);
  EXPECT_EQ(ExceptionOf("setXAttr", set), "IOException") << "it is there already";
  const auto all = Ask<hdfs::XAttrsResponseProto>("listXAttrs", Path("/f"));
  ASSERT_EQ(all.xattrs_size(), 1);
  EXPECT_EQ(all.xattrs(0).name(), "colour");
  EXPECT_EQ(all.xattrs(0).namespace_(), hdfs::XAttrProto::USER);
  hdfs::GetXAttrsRequestProto get;
  get.set_src("/f");
  EXPECT_EQ(Ask<hdfs::XAttrsResponseProto>("getXAttrs", get).xattrs(0).value(), "red");
  get.add_xattrs()->set_namespace_(hdfs::XAttrProto::USER);
  get.mutable_xattrs(0)->set_name("size");
  EXPECT_EQ(ExceptionOf("getXAttrs", get), "IOException");
  hdfs::RemoveXAttrRequestProto remove;
  remove.set_src("/f");
  *remove.mutable_xattr() = set.xattr();
  Ask<hdfs::EmptyProto>("removeXAttr", remove);
  EXPECT_EQ(ExceptionOf("removeXAttr", remove), "IOException");
  remove.mutable_xattr()->set_namespace_(hdfs::XAttrProto::RAW);
  EXPECT_EQ(ExceptionOf("removeXAttr", remove), "HadoopIllegalArgumentException");
}

TEST_F(HadoopDoorTest, WhatIsNotUtf8ComesIntoNoRow) {
  WriteFile("/f");
  const std::string bad = "a\xff";
  EXPECT_NE(ExceptionOf("create", Create("/g", 1, bad)), "none");
  hdfs::SetOwnerRequestProto owner;
  owner.set_src("/f");
  owner.set_username(bad);
  EXPECT_NE(ExceptionOf("setOwner", owner), "none");
  owner.clear_username();
  owner.set_groupname(bad);
  EXPECT_NE(ExceptionOf("setOwner", owner), "none");
  hdfs::SetXAttrRequestProto xattr;
  xattr.set_src("/f");
  xattr.mutable_xattr()->set_namespace_(hdfs::XAttrProto::USER);
  xattr.mutable_xattr()->set_name(bad);
  xattr.set_flag(1);
  EXPECT_NE(ExceptionOf("setXAttr", xattr), "none");
  EXPECT_NE(ExceptionOf("mkdirs", Path("/" + bad)), "none");

  EXPECT_TRUE(std::holds_alternative<ipc::Failure>(Send(NewCall("create", Create("/h"), 1000), bad)));
  EXPECT_EQ(List("/").dirlist().partiallisting_size(), 1);
}

TEST_F(HadoopDoorTest, FiguresOfTheClusterAreThoseOfItsReport) {
  v1::ClusterReportResponse& report = *admin_.report;
  report.set_under_replicated_blocks(1);
  report.set_corrupt_blocks(2);
  report.set_missing_blocks(3);
  report.set_missing_blocks_replication_one(4);
  report.set_pending_deletion_blocks(5);
  report.set_at_risk_blocks(6);
  report.set_mis_replicated_blocks(7);
  for (const char* uuid : {"d1", "d2", "dead"}) {
    v1::DatanodeReport& node = *report.add_datanodes();
    node.mutable_info()->set_uuid(uuid);
    for (int i = 0; i < 2; ++i) {
      v1::StorageStatistics& storage = *node.add_storages();
      storage.set_capacity_bytes(100);
      storage.set_used_bytes(10);
      storage.set_remaining_bytes(80);
    }
  }
  report.mutable_datanodes(1)->set_admin_state(v1::DECOMMISSIONING);
  report.mutable_datanodes(2)->set_state(v1::DEAD);

  const auto stats = Ask<hdfs::GetFsStatsResponseProto>("getFsStats", hdfs::EmptyProto());
  EXPECT_EQ(stats.capacity(), 400u) << "of the nodes that live";
  EXPECT_EQ(stats.used(), 40u);
  EXPECT_EQ(stats.remaining(), 320u);
  EXPECT_EQ(stats.under_replicated(), 1u);
  EXPECT_EQ(stats.corrupt_blocks(), 2u);
  EXPECT_EQ(stats.missing_blocks(), 3u);
  EXPECT_EQ(stats.missing_repl_one_blocks(), 4u);
  EXPECT_EQ(stats.pending_deletion_blocks(), 5u);
  const auto blocks = Ask<hdfs::GetFsReplicatedBlockStatsResponseProto>("getFsReplicatedBlockStats", hdfs::EmptyProto());
  EXPECT_EQ(blocks.low_redundancy(), 1u);
  EXPECT_EQ(blocks.corrupt_blocks(), 2u);
  EXPECT_EQ(blocks.missing_blocks(), 3u);
  EXPECT_EQ(blocks.missing_repl_one_blocks(), 4u);
  EXPECT_EQ(blocks.pending_deletion_blocks(), 5u);
  EXPECT_EQ(blocks.highest_prio_low_redundancy_blocks(), 6u);
  EXPECT_EQ(blocks.badly_distributed_blocks(), 7u);

  hdfs::GetDatanodeReportRequestProto request;
  const auto nodes_of = [this, &request](hdfs::DatanodeReportTypeProto type) {
    request.set_type(type);
    std::vector<std::string> nodes;
    const auto listed = Ask<hdfs::GetDatanodeReportResponseProto>("getDatanodeReport", request);
    for (const hdfs::DatanodeInfoProto& node : listed.di()) nodes.push_back(node.id().datanodeuuid());
    const auto with_storages = Ask<hdfs::GetDatanodeStorageReportResponseProto>("getDatanodeStorageReport", request);
    EXPECT_EQ(with_storages.datanodestoragereports_size(), listed.di_size());
    return nodes;
  };
  EXPECT_THAT(nodes_of(hdfs::ALL_NODES), ElementsAre("d1", "d2", "dead"));
  EXPECT_THAT(nodes_of(hdfs::LIVE_NODES), ElementsAre("d1", "d2"));
  EXPECT_THAT(nodes_of(hdfs::DEAD_NODES), ElementsAre("dead"));
  EXPECT_THAT(nodes_of(hdfs::DECOMMISSIONING_NODES), ElementsAre("d2"));

  admin_.report = absl::PermissionDeniedError("not you");
  EXPECT_NE(ExceptionOf("getFsStats", hdfs::EmptyProto()), "none");
  EXPECT_NE(ExceptionOf("getDatanodeReport", request), "none");
  EXPECT_NE(ExceptionOf("setSafeMode",
                        [] {
                          hdfs::SetSafeModeRequestProto safe_mode;
                          safe_mode.set_action(hdfs::SAFEMODE_GET);
                          return safe_mode;
                        }()),
            "none");
}

TEST_F(HadoopDoorTest, ServerDefaultsTellClientsTheChecksumThatIsStored) {
  const auto defaults = Ask<hdfs::GetServerDefaultsResponseProto>("getServerDefaults", hdfs::EmptyProto()).serverdefaults();
  EXPECT_EQ(defaults.checksumtype(), hdfs::CHECKSUM_CRC32C);
  EXPECT_EQ(defaults.bytesperchecksum(), 512u);
  EXPECT_EQ(defaults.blocksize(), 128u << 20);
  EXPECT_EQ(defaults.replication(), 3u);
  EXPECT_TRUE(defaults.has_keyprovideruri());
  EXPECT_FALSE(defaults.encryptdatatransfer());
}

TEST_F(HadoopDoorTest, WhatCairnDoesNotHaveIsSaidSo) {
  EXPECT_EQ(ExceptionOf("createSnapshot", hdfs::EmptyProto()), "UnsupportedOperationException");
  EXPECT_EQ(std::get<ipc::Failure>(Send("createSymlink", hdfs::EmptyProto())).message, "Cairn has no symbolic links.");
  EXPECT_EQ(ExceptionOf("setAcl", Path("/")), "AclException");
  EXPECT_EQ(ExceptionOf("addErasureCodingPolicies", hdfs::EmptyProto()), "UnsupportedOperationException");
  // Nothing where clients take nothing for an answer.
  for (const char* method : {"getDelegationToken", "getDataEncryptionKey", "msync", "getErasureCodingPolicies", "getSlowDatanodeReport"})
    EXPECT_EQ(std::get<std::string>(Send(method, hdfs::EmptyProto())), "") << method;
  EXPECT_EQ(std::get<std::string>(Send("getErasureCodingPolicy", Path("/"))), "");
  EXPECT_EQ(ExceptionOf("getErasureCodingPolicy", Path("/none")), "FileNotFoundException");
  EXPECT_FALSE(Ask<hdfs::NothingMoreResponseProto>("listEncryptionZones", hdfs::EmptyProto()).hasmore());
  EXPECT_EQ(Ask<hdfs::GetStoragePolicyResponseProto>("getStoragePolicy", Path("/")).storagepolicy().name(), "HOT");
  EXPECT_EQ(Ask<hdfs::HAServiceStateResponseProto>("getHAServiceState", hdfs::EmptyProto()).state(), hdfs::ACTIVE);
}

TEST_F(HadoopDoorTest, UnknownNamesAndVersionsAreToldApart) {
  ipc::Call call = NewCall("getTheMoon", hdfs::EmptyProto(), 0);
  const auto failure_of = [this](const ipc::Call& asked) { return std::get<ipc::Failure>(HadoopFixture::Send(asked)); };
  ipc::Failure failure = failure_of(call);
  EXPECT_EQ(failure.exception, "org.apache.hadoop.ipc.RpcNoSuchMethodException");
  EXPECT_EQ(failure.code, hdfs::RpcResponseHeaderProto::ERROR_NO_SUCH_METHOD);
  EXPECT_THAT(failure.message, HasSubstr("Unknown method getTheMoon called on"));
  call.method = "getServiceStatus";
  EXPECT_EQ(failure_of(call).code, hdfs::RpcResponseHeaderProto::ERROR_NO_SUCH_METHOD);
  call.protocol = "org.apache.hadoop.ha.HAServiceProtocol";
  EXPECT_TRUE(std::holds_alternative<std::string>(HadoopFixture::Send(call)));
  call.version = 2;
  EXPECT_EQ(failure_of(call).exception, "org.apache.hadoop.ipc.RPC$VersionMismatch");
  call.protocol = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB";
  EXPECT_EQ(failure_of(call).code, hdfs::RpcResponseHeaderProto::ERROR_NO_SUCH_PROTOCOL);
}

TEST_F(HadoopDoorTest, ARequestThatLacksARequiredFieldIsAnError) {
  EXPECT_EQ(ExceptionOf("getFileInfo", hdfs::EmptyProto()), "IOException");
  EXPECT_EQ(ExceptionOf("rename", Path("/a")), "IOException");
}

}  // namespace
}  // namespace cairn::namenode
