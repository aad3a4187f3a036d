// What is written comes back: sizes at every edge, large files, damaged replicas, a NameNode that restarts, repeated calls.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/rpc/grpc_client.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kLargeBlock = 4 << 20;  // The sanitizer takes its time.
#else
constexpr uint64_t kLargeBlock = 128 << 20;
#endif

class DataPath : public ClusterTest {
 protected:
  void Start(uint64_t block_size, size_t datanodes = 3) {
    const auto changes = [block_size](namenode::NamenodeOptions* namenode) {
      namenode->clients.default_block_size_bytes = block_size;
      namenode->replicas.acknowledged_grace = absl::Seconds(3);
    };
    StartCluster(changes, datanodes);
  }
};

TEST_F(DataPath, FilesOfEveryEdgeSizeComeBackIdentical) {
  constexpr uint64_t kBlock = 1 << 20;
  Start(kBlock);
  for (const uint64_t size : std::vector<uint64_t>{0, 1, 511, 512, 513, 65536, 65537, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock + 777}) {
    const std::string path = fmt::format("/edges/{}", size);
    const std::string content = Content(1, size);
    const absl::Status written = WriteFile(files_.get(), path, content);
    ASSERT_TRUE(written.ok()) << path << ": " << written;
    const auto read = ReadFile(files_.get(), path);
    ASSERT_TRUE(read.ok()) << path << ": " << read.status();
    EXPECT_TRUE(*read == content) << path;
    const auto status = files_->GetFileStatus(path);
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(status->length_bytes, size);
    EXPECT_FALSE(status->under_construction);
  }
}

TEST_F(DataPath, AFileOfEightBlocksHasThreeReplicasOfEachAndComesBackIdentical) {
  Start(kLargeBlock);
  auto writer = files_->Create("/large");
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::string piece = Content(7, 1 << 20);
  const uint64_t pieces = 8 * kLargeBlock / piece.size();
  for (uint64_t i = 0; i < pieces; ++i) {
    std::string numbered = piece;
    std::copy_n(reinterpret_cast<const char*>(&i), sizeof i, numbered.begin());
    const absl::Status status = (*writer)->Append(numbered);
    ASSERT_TRUE(status.ok()) << status;
  }
  const absl::Status closed = (*writer)->Close();
  ASSERT_TRUE(closed.ok()) << closed;

  const auto blocks = files_->GetBlockLocations("/large", 0, 8 * kLargeBlock);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  ASSERT_EQ(blocks->size(), 8u);
  for (const BlockLocation& block : *blocks) {
    EXPECT_EQ(block.length_bytes, kLargeBlock);
    EXPECT_EQ(block.hosts.size(), 3u);
  }
  auto reader = files_->Open("/large");
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string found(piece.size(), '\0');
  for (uint64_t i = 0; i < pieces; ++i) {
    const absl::StatusOr<size_t> got = (*reader)->ReadAt(i * piece.size(), found);
    ASSERT_TRUE(got.ok()) << got.status();
    std::string expected = piece;
    std::copy_n(reinterpret_cast<const char*>(&i), sizeof i, expected.begin());
    ASSERT_TRUE(found == expected) << "piece " << i;
  }
}

TEST_F(DataPath, ListingsOfAnyNumberOfPagesAreWhole) {
  StartCluster([](namenode::NamenodeOptions* namenode) { namenode->clients.list_limit = 10; });
  for (const int entries : {0, 1, 2, 3, 9, 10, 11, 20, 21}) {
    const std::string directory = fmt::format("/of{}", entries);
    ASSERT_TRUE(files_->MakeDirectories(directory).ok());
    std::vector<std::string> expected;
    for (int i = 0; i < entries; ++i) {
      expected.push_back(fmt::format("{}/{:02}", directory, i));
      ASSERT_TRUE(files_->MakeDirectories(expected.back()).ok());
    }
    const auto listed = files_->List(directory);
    ASSERT_TRUE(listed.ok()) << listed.status();
    std::vector<std::string> paths;
    for (const FileStatus& status : *listed) paths.push_back(status.path);
    EXPECT_EQ(paths, expected);
    bool more = false;
    const auto page = files_->ListPage(directory, "10", 5, &more);  // After a name that is there, or not.
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->size(), static_cast<size_t>(std::clamp(entries - 11, 0, 5)));
    EXPECT_EQ(more, entries > 16);
  }
}

TEST_F(DataPath, AFlippedByteIsNoticedAndAnotherReplicaRead) {
  Start(1 << 20);
  const std::string content = Content(3, 700'000);
  ASSERT_TRUE(WriteFile(files_.get(), "/flipped", content).ok());
  // In two of the three, so that whichever is read first, a bad one is met for sure by some reader.
  for (size_t index = 0; index < 2; ++index) {
    const std::vector<fs::path> replicas = ReplicaFiles(index);
    ASSERT_EQ(replicas.size(), 1u);
    std::fstream file(replicas[0], std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(fs::file_size(replicas[0]));
    file.seekg(size - 100'000);
    const char old = static_cast<char>(file.get());
    file.seekp(size - 100'000);
    file.put(static_cast<char>(old ^ 0x40));
    ASSERT_TRUE(file.good());
  }
  for (int i = 0; i < 5; ++i) {
    const auto read = ReadFile(files_.get(), "/flipped");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == content);
  }
}

TEST_F(DataPath, AWriterOutlivesARestartOfTheNameNode) {
  Start(1 << 20);
  const std::string content = Content(5, 6'000'000);
  auto writer = files_->Create("/restart");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(content.substr(0, 2'500'000)).ok());
  std::thread restarter([&] {
    cluster_->StopNamenode();
    const absl::Status started = cluster_->StartNamenode();
    EXPECT_TRUE(started.ok()) << started;
  });
  absl::Status status = (*writer)->Append(content.substr(2'500'000));
  EXPECT_TRUE(status.ok()) << status;
  status = (*writer)->Close();
  EXPECT_TRUE(status.ok()) << status;
  restarter.join();
  const auto read = ReadFile(files_.get(), "/restart");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == content);
}

// One call through gRPC, as a client library sends it.
template <class Request, class Response>
absl::StatusOr<Response> Call(api::ClientNamenode* api, Env* env,
                              void (api::ClientNamenode::*call)(api::CallContext, Request, api::Done<Response>), const Request& request) {
  std::promise<absl::StatusOr<Response>> promise;
  api::CallContext context;
  context.deadline = env->clock().Now() + absl::Seconds(20);
  (api->*call)(std::move(context), request, [&](absl::StatusOr<Response> r) { promise.set_value(std::move(r)); });
  return promise.get_future().get();
}

v1::RequestHeader Header(uint32_t slot, uint64_t sequence, int64_t slot_opened_ms) {
  v1::RequestHeader header;
  header.set_client_id("0123456789abcdef");
  header.set_slot(slot);
  header.set_sequence(sequence);
  header.set_slot_opened_ms(slot_opened_ms);
  header.set_user("test");
  header.set_client_name("test-client");
  return header;
}

TEST_F(DataPath, ARepeatedCallActsOnceAlsoAcrossARestart) {
  Start(1 << 20);
  const auto defaults = [&] {
    auto api = rpc::NewClientNamenode(transport_.address(), env_.get());
    v1::GetServerDefaultsRequest request;
    *request.mutable_header() = Header(0, 0, 0);
    return Call(api.get(), env_.get(), &api::ClientNamenode::GetServerDefaults, request);
  }();
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  const int64_t opened = defaults->header().namenode_time_ms();

  v1::CreateRequest create;
  *create.mutable_header() = Header(1, 1, opened);
  create.set_path("/once");
  create.set_create_parent(true);
  v1::MkdirsRequest mkdirs;
  *mkdirs.mutable_header() = Header(2, 1, opened);
  mkdirs.set_path("/from");
  v1::RenameRequest rename;
  *rename.mutable_header() = Header(2, 2, opened);
  rename.set_source("/from");
  rename.set_destination("/to");
  v1::DeleteRequest remove;
  *remove.mutable_header() = Header(3, 1, opened);
  remove.set_path("/to");

  uint64_t inode = 0;
  for (int round = 0; round < 3; ++round) {  // The second on the same NameNode, the third on a new one.
    auto api = rpc::NewClientNamenode(transport_.address(), env_.get());
    const auto created = Call(api.get(), env_.get(), &api::ClientNamenode::Create, create);
    ASSERT_TRUE(created.ok()) << round << ": " << created.status();
    if (round == 0) inode = created->status().inode_id();
    EXPECT_EQ(created->status().inode_id(), inode) << round;
    if (round == 0) {
      const auto made = Call(api.get(), env_.get(), &api::ClientNamenode::Mkdirs, mkdirs);
      ASSERT_TRUE(made.ok()) << made.status();
    }
    const auto renamed = Call(api.get(), env_.get(), &api::ClientNamenode::Rename, rename);
    EXPECT_TRUE(renamed.ok()) << round << ": " << renamed.status();
    const auto removed = Call(api.get(), env_.get(), &api::ClientNamenode::Delete, remove);
    ASSERT_TRUE(removed.ok()) << round << ": " << removed.status();
    EXPECT_TRUE(removed->existed()) << round;
    if (round == 1) {
      api.reset();
      cluster_->StopNamenode();
      const absl::Status started = cluster_->StartNamenode();
      ASSERT_TRUE(started.ok()) << started;
    }
  }
}

}  // namespace
}  // namespace cairn::testing
