// What the operations on the tree say when they refuse: the kind, the reason and the words of each condition. Of rights, attributes,
// quotas, limits, concat and setReplication in the tests of those; of writers in block_ops_test.cc and lease_ops_test.cc.

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/retry_table.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using std::string_literals::operator""s;

std::string Said(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return fmt::format("{}{}{}: {}", KindName(KindOf(status)), reason.empty() ? "" : " ", reason, std::string(status.message()));
}

// /d holds a file f and an empty directory e.
class RefusalWords : public ::testing::Test {
 protected:
  RefusalWords() {
    space_.Must(MkdirsMutation("/d/e"));
    space_.WriteFile("/d/f", {1});
  }
  std::string Said(const v1::Mutation& mutation) { return namenode::Said(space_.Apply(mutation).status()); }
  std::string PathOfRefusal(const v1::Mutation& mutation) { return ErrorOf(space_.Apply(mutation).status())->path; }

  TestNamespace space_;
};

TEST_F(RefusalWords, PathsThatAreNone) {
  const auto said = [](std::string_view path) { return namenode::Said(SplitPath(path).status()); };
  EXPECT_EQ(said(""), "kInvalidPath: Invalid path name \"\": it must begin with '/'");
  EXPECT_EQ(said("a/b"), "kInvalidPath: Invalid path name \"a/b\": it must begin with '/'");
  EXPECT_EQ(said("/a/./b"), "kInvalidPath: Invalid path name \"/a/./b\": \".\" is not allowed as a component");
  EXPECT_EQ(said("/a/.."), "kInvalidPath: Invalid path name \"/a/..\": \"..\" is not allowed as a component");
  EXPECT_EQ(said("/a\0b"s), "kInvalidPath: Invalid path name \"/a\": it holds a NUL after these bytes");
  EXPECT_EQ(said("/a\xff"), "kInvalidPath: Invalid path name \"/a\\xff\": it is not valid UTF-8");
  EXPECT_EQ(said(std::string(300, 'x')),
            fmt::format("kInvalidPath: Invalid path name \"{}...\": it must begin with '/'", std::string(256, 'x')));
  for (const v1::Mutation& mutation :
       {MkdirsMutation("x"), CreateMutation("x", "me"), DeleteMutation("x", true), RenameMutation("x", "/y"), RenameMutation("/d/f", "x")})
    EXPECT_EQ(Said(mutation), "kInvalidPath: Invalid path name \"x\": it must begin with '/'") << mutation.ShortDebugString();
}

TEST_F(RefusalWords, AFileInTheMiddleOfAPath) {
  for (const v1::Mutation& mutation : {MkdirsMutation("/d/f/x"), CreateMutation("/d/f/x", "me"), DeleteMutation("/d/f/x", true),
                                       RenameMutation("/d/f/x", "/y"), RenameMutation("/d/e", "/d/f/x")}) {
    EXPECT_EQ(Said(mutation), "kNotDirectory: /d/f/x: /d/f is a file, not a directory") << mutation.ShortDebugString();
    EXPECT_EQ(PathOfRefusal(mutation), "/d/f");
  }
}

TEST_F(RefusalWords, Mkdirs) {
  EXPECT_EQ(Said(MkdirsMutation("/d/f")), "kAlreadyExists: Path is not a directory: /d/f");
  v1::Mutation alone = MkdirsMutation("/x/y");
  alone.mutable_mkdirs()->set_create_parent(false);
  EXPECT_EQ(Said(alone), "kNotFound: Parent directory doesn't exist: /x");
  alone.mutable_mkdirs()->set_path("/d/x/y/z");
  EXPECT_EQ(Said(alone), "kNotFound: Parent directory doesn't exist: /d/x/y (/d/x is missing)");
  EXPECT_EQ(PathOfRefusal(alone), "/d/x");
}

TEST_F(RefusalWords, Create) {
  EXPECT_EQ(Said(CreateMutation("/d/n", "")), "kInvalidArgument: /d/n: create needs a client name of 1 to 65535 bytes");
  EXPECT_EQ(Said(CreateMutation("/d", "me")), "kAlreadyExists IS_DIRECTORY: /d already exists as a directory");
  EXPECT_EQ(Said(CreateMutation("/", "me")), "kAlreadyExists IS_DIRECTORY: / already exists as a directory");
  EXPECT_EQ(Said(CreateMutation("/d/f", "me")), "kAlreadyExists: /d/f for client me already exists");
  v1::Mutation create = CreateMutation("/x/y", "me");
  create.mutable_create()->set_create_parent(false);
  EXPECT_EQ(Said(create), "kNotFound: Parent directory doesn't exist: /x");
  create = CreateMutation("/d/n", "me");
  create.mutable_create()->set_replication(513);
  EXPECT_EQ(Said(create),
            "kInvalidArgument REPLICATION_OUT_OF_RANGE: Requested replication factor of 513 exceeds maximum of 512 for /d/n (set by "
            "dfs.replication.max)");
  create.mutable_create()->set_replication(0);
  EXPECT_EQ(Said(create),
            "kInvalidArgument REPLICATION_OUT_OF_RANGE: Requested replication factor of 0 is less than the required minimum of 1 for /d/n "
            "(set by dfs.namenode.replication.min)");
  create = CreateMutation("/d/n", "me");
  create.mutable_limits()->set_min_block_size_bytes(1000);
  create.mutable_limits()->set_max_block_size_bytes(2000);
  create.mutable_create()->set_block_size_bytes(999);
  EXPECT_EQ(Said(create),
            "kInvalidArgument BLOCK_SIZE_OUT_OF_RANGE: /d/n: Specified block size is less than configured minimum value "
            "(dfs.namenode.fs-limits.min-block-size): 999 < 1000");
  create.mutable_create()->set_block_size_bytes(2001);
  EXPECT_EQ(Said(create),
            "kInvalidArgument BLOCK_SIZE_OUT_OF_RANGE: /d/n: Specified block size is more than configured maximum value "
            "(cairn.block.max-size): 2001 > 2000");
  EXPECT_EQ(ErrorOf(space_.Apply(create).status())->key, "cairn.block.max-size");
  EXPECT_EQ(ErrorOf(space_.Apply(create).status())->limit, 2000);
  for (const uint64_t fits : {1000u, 2000u}) {
    create.mutable_create()->set_block_size_bytes(fits);
    create.mutable_create()->set_overwrite(true);
    EXPECT_THAT(space_.Apply(create), IsOk());
  }
  create = CreateMutation("/d/m", "me");
  create.mutable_create()->set_with_first_block(true);
  EXPECT_EQ(Said(create), "kInvalidArgument NO_TARGETS: /d/m: a first block without targets");
}

TEST_F(RefusalWords, Rename) {
  space_.WriteFile("/g", {1});
  space_.Must(MkdirsMutation("/full/x"));
  const auto said = [&](const std::string& from, const std::string& to, bool overwrite = false) {
    return Said(RenameMutation(from, to, overwrite));
  };
  EXPECT_EQ(said("/d/no", "/x"), "kNotFound: rename source /d/no is not found.");
  EXPECT_EQ(said("/no/where", "/x"), "kNotFound: rename source /no/where is not found. (/no is missing)");
  EXPECT_EQ(PathOfRefusal(RenameMutation("/no/where", "/x")), "/no");
  EXPECT_EQ(said("/", "/x"), "kInvalidPath: rename source cannot be the root");
  EXPECT_EQ(said("/g", "/", true), "kInvalidPath: rename destination cannot be the root");
  EXPECT_EQ(said("/g", "/g"), "kAlreadyExists: The source /g and destination /g are the same");
  EXPECT_EQ(said("/d", "/d/e/x"), "kInvalidPath: Rename destination /d/e/x is a directory or file under source /d");
  EXPECT_EQ(said("/g", "/no/x"), "kNotFound: rename destination parent /no not found.");
  EXPECT_EQ(said("/g", "/no/x/y"), "kNotFound: rename destination parent /no/x not found. (/no is missing)");
  EXPECT_EQ(said("/g", "/d/f"), "kAlreadyExists: rename destination /d/f already exists");
  EXPECT_EQ(said("/g", "/d/e", true), "kIsDirectory: Source /g and destination /d/e must both be directories");
  EXPECT_EQ(said("/d", "/g", true), "kNotDirectory: Source /d and destination /g must both be directories");
  EXPECT_EQ(said("/d", "/full", true), "kNotEmpty: rename destination directory is not empty: /full has 1 entries");
  EXPECT_EQ(PathOfRefusal(RenameMutation("/d", "/full", true)), "/full");
}

TEST_F(RefusalWords, Delete) {
  EXPECT_EQ(Said(DeleteMutation("/", true)), "kInvalidPath: the root cannot be deleted");
  EXPECT_EQ(Said(DeleteMutation("/d", false)), "kNotEmpty: /d is non empty: it has 2 entries; delete it recursively");
  EXPECT_EQ(PathOfRefusal(DeleteMutation("/d", false)), "/d");
  v1::Mutation many = MutationOf("");
  for (int i = 0; i < 257; ++i) many.mutable_delete_many()->add_paths("/x");
  EXPECT_EQ(Said(many), "kInvalidArgument: deleteMany: 257 paths in one mutation, at most 256 may be");
}

TEST_F(RefusalWords, SetQuota) {
  v1::Mutation mutation = MutationOf("");
  mutation.set_superuser(true);
  mutation.mutable_set_quota()->set_path("/d");
  mutation.mutable_set_quota()->set_namespace_quota(-2);
  mutation.mutable_set_quota()->set_space_quota_bytes(5);
  EXPECT_EQ(Said(mutation), "kInvalidArgument: Illegal value for nsQuota or ssQuota: -2 and 5; a quota is at least 0, or -1 for none");
  mutation.mutable_set_quota()->set_namespace_quota(1);
  mutation.mutable_set_quota()->set_path("/no/d");
  EXPECT_EQ(Said(mutation), "kNotFound: Directory does not exist: /no/d");
  EXPECT_EQ(PathOfRefusal(mutation), "/no");
  mutation.mutable_set_quota()->set_path("/d/f");
  EXPECT_EQ(Said(mutation), "kNotDirectory: /d/f: Is not a directory");
}

TEST_F(RefusalWords, WhatIsNotThere) {
  const auto missing = [&](auto change) {
    v1::Mutation mutation = MutationOf("me");
    change(mutation);
    EXPECT_EQ(Said(mutation), "kNotFound: File does not exist: /d/no/x (/d/no is missing)") << mutation.ShortDebugString();
    EXPECT_EQ(PathOfRefusal(mutation), "/d/no");
  };
  missing([](v1::Mutation& m) { m.mutable_set_permission()->set_path("/d/no/x"); });
  missing([](v1::Mutation& m) { m.mutable_set_owner()->set_path("/d/no/x"); });
  missing([](v1::Mutation& m) { m.mutable_set_times()->set_path("/d/no/x"); });
  missing([](v1::Mutation& m) { m.mutable_set_replication()->set_path("/d/no/x"); });
  missing([](v1::Mutation& m) {
    m.mutable_concat()->set_target("/d/no/x");
    m.mutable_concat()->add_sources("/d/f");
  });
  for (const bool removes : {false, true}) {
    missing([&](v1::Mutation& m) {
      v1::Xattr& xattr = removes ? *m.mutable_remove_xattr()->mutable_xattr() : *m.mutable_set_xattr()->mutable_xattr();
      xattr.set_name_space(v1::XATTR_USER);
      xattr.set_name("a");
      (removes ? m.mutable_remove_xattr()->mutable_path() : m.mutable_set_xattr()->mutable_path())->assign("/d/no/x");
    });
  }
  const std::string words = "kNotFound: File does not exist: /d/no";
  EXPECT_EQ(namenode::Said(StatusOfPath(space_.view(), "/d/no").status()), words);
  EXPECT_EQ(namenode::Said(ListDirectory(space_.view(), "/d/no", "", 10).status()), words);
  EXPECT_EQ(namenode::Said(SummaryOfPath(space_.view(), "/d/no").status()), words);
  EXPECT_EQ(namenode::Said(ResolveFile(space_.view(), "/d/no", Caller::Trusted(), 0).status()), words);
  EXPECT_EQ(namenode::Said(ResolveFile(space_.view(), "/d", Caller::Trusted(), 0).status()), "kIsDirectory: Path is not a file: /d");
  EXPECT_EQ(namenode::Said(ResolveId(space_.view(), InodeId(4711)).status()), "kNotFound: inode 4711 does not exist");
  EXPECT_EQ(namenode::Said(PathOf(space_.view(), InodeId(4711)).status()), "kNotFound: inode 4711 does not exist");
}

TEST_F(RefusalWords, RetryIds) {
  v1::Mutation mutation = WithRetry(MkdirsMutation("/new"), 7, 5, 111);
  mutation.set_client_id("short");
  EXPECT_EQ(Said(mutation), "kInvalidArgument: call 5 in slot 7: a client id has 16 bytes, not 5");
  EXPECT_EQ(Said(WithRetry(MkdirsMutation("/new"), kMaxSlots, 5)),
            fmt::format("kInvalidArgument: call 5 in slot {0}: slots are below {0}", kMaxSlots));
  mutation = WithRetry(MkdirsMutation("/new"), 7, 5, 111);
  mutation.set_slot_opened_ms(kTestStartMs);
  space_.now_ms = kTestStartMs + kSlotExpiresMs + 1;
  EXPECT_EQ(
      Said(mutation),
      fmt::format("kSlotExpired SLOT_EXPIRED: call 5 in slot 7: the slot was opened {} ms ago and nothing is known of it: if this is a "
                  "retry its outcome is unknown, a new call takes a fresh slot",
                  kSlotExpiresMs + 1));
  space_.now_ms = kTestStartMs;
  space_.Must(mutation);
  EXPECT_EQ(Said(WithRetry(MkdirsMutation("/new"), 7, 4, 111)),
            "kInvalidArgument OLD_SEQUENCE: call 4 in slot 7: the slot has gone on to 5");
  EXPECT_EQ(Said(WithRetry(MkdirsMutation("/newer"), 7, 5, 222)),
            "kInvalidArgument REQUEST_MISMATCH: call 5 in slot 7: another request was made under this number");
}

TEST_F(RefusalWords, PartsOfDeleteMany) {
  v1::Mutation part = WithRetry(MutationOf(""), 0, 1);
  part.mutable_delete_many()->add_paths("/d/f");
  part.mutable_delete_many()->set_from(1);
  EXPECT_EQ(Said(part), "kInvalidArgument NO_EARLIER_PART: call 1 in slot 0: it goes on from path 1, but none was done");
  part.mutable_delete_many()->set_from(0);
  space_.Must(part);
  part.mutable_delete_many()->set_from(2);
  EXPECT_EQ(Said(part), "kInvalidArgument NO_EARLIER_PART: call 1 in slot 0: it goes on from path 2, but 1 were done");
}

TEST_F(RefusalWords, TheNamenodesOwn) {
  v1::Mutation mutation;
  EXPECT_EQ(Said(mutation), "kUnsupported: the mutation holds no operation that is known here");
  mutation.mutable_register_storages()->add_storage_uuids("s");
  EXPECT_EQ(Said(mutation), "kInvalidArgument: a DataNode registered storages without its uuid");
  mutation.mutable_register_storages()->set_datanode_uuid("d");
  mutation.mutable_register_storages()->add_storage_uuids("");
  EXPECT_EQ(Said(mutation), "kInvalidArgument: DataNode d: a storage without uuid");
  mutation.mutable_set_meta()->set_name("next_inode_id");
  EXPECT_EQ(Said(mutation), "kInvalidArgument: meta next_inode_id is a counter: it can only be raised");
  mutation.mutable_set_meta()->set_name("");
  mutation.mutable_set_meta()->set_at_least_block_id(kEndBlockId.value());
  EXPECT_EQ(Said(mutation), fmt::format("kInvalidArgument: block ids cannot go on from {}", kEndBlockId.value()));
  mutation.mutable_set_meta()->clear_at_least_block_id();
  mutation.mutable_set_meta()->add_also_remove("next_inode_id");
  EXPECT_EQ(Said(mutation), "kInvalidArgument: meta next_inode_id is not to go");
}

// What is wanted of nodes: decided on one state, written only if it is still that one; and of two nodes in one batch.
TEST_F(RefusalWords, RowThatWasChangedMeanwhile) {
  const auto change = [](const std::string& name, const std::string& expected, const std::string& value) {
    v1::Mutation mutation;
    v1::Mutation::SetMeta& op = *mutation.mutable_set_meta();
    op.set_name(name);
    op.set_compare(true);
    op.set_expected(expected);
    op.set_value(value);
    return mutation;
  };
  space_.Must(change("node_admin/a", "", "1"));
  EXPECT_EQ(Said(change("node_admin/a", "", "2")), "kStaleGeneration: meta node_admin/a was changed meanwhile");
  EXPECT_EQ(Said(change("node_admin/a", "2", "3")), "kStaleGeneration: meta node_admin/a was changed meanwhile");
  space_.Must(change("node_admin/a", "1", "2"));
  v1::Mutation both = change("node_admin/b", "2", "2");
  both.mutable_set_meta()->add_also_remove("node_admin/a");
  EXPECT_EQ(Said(both), "kStaleGeneration: meta node_admin/b was changed meanwhile");
  EXPECT_EQ(*space_.view().Get(Family::kMeta, "node_admin/a"), "2");
  both.mutable_set_meta()->clear_expected();
  space_.Must(both);
  EXPECT_EQ(*space_.view().Get(Family::kMeta, "node_admin/a"), std::nullopt);
  EXPECT_EQ(*space_.view().Get(Family::kMeta, "node_admin/b"), "2");
}

TEST_F(RefusalWords, ConcatOfTooManyBlocks) {
  space_.WriteFile("/d/t", {1});
  // More than one mutation moves: two files of half as many and one more.
  const std::vector<uint64_t> half(2049, 1);
  space_.WriteFile("/d/a", half);
  space_.WriteFile("/d/b", half);
  v1::Mutation concat = MutationOf("");
  concat.mutable_concat()->set_target("/d/t");
  for (const char* source : {"/d/a", "/d/b"}) concat.mutable_concat()->add_sources(source);
  EXPECT_EQ(Said(concat),
            "kInvalidArgument TOO_MANY_BLOCKS_AT_ONCE: concat: 4098 blocks are too many to be moved at once (at most 4096): name fewer "
            "sources");
  concat.mutable_limits()->set_max_blocks_per_file(4098);
  EXPECT_EQ(Said(concat),
            "kQuota TOO_MANY_BLOCKS: /d/t: File has reached the limit on maximum number of blocks: it would have 4099 (limit 4098, raised "
            "by dfs.namenode.fs-limits.max-blocks-per-file)");
  v1::Mutation many = MutationOf("");
  many.mutable_concat()->set_target("/d/t");
  for (int i = 0; i < 1001; ++i) many.mutable_concat()->add_sources("/d/a");
  EXPECT_EQ(Said(many), "kInvalidArgument TOO_MANY_SOURCES: concat: 1001 sources are too many for one call (at most 1000)");
}

}  // namespace
}  // namespace cairn::namenode
