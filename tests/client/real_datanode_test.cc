// The client against the product's own transfer port and block store, over simulated network and disks.

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/src/client_core.h"
#include "client/src/file_system.h"
#include "tests/client/fake_namenode.h"
#include "tests/datanode/transfer_harness.h"
#include "tests/testing/sim_rpc.h"

namespace cairn::client {
namespace {

using ::testing::SizeIs;

constexpr size_t kBlock = 1 << 20;

class RealDatanodes : public datanode::TransferTest {
 protected:
  RealDatanodes() : TransferTest(3) {
    StartNodes(datanode::TransferOptions());
    for (size_t i = 0; i < 3; ++i) {
      v1::StorageLocation location;
      location.set_storage_uuid(node(i).store->Statistics()[0].storage_uuid());
      location.mutable_datanode()->set_uuid(node(i).machine->name());
      location.mutable_datanode()->mutable_transfer()->set_host(node(i).machine->address());
      location.mutable_datanode()->mutable_transfer()->set_port(9866);
      namenode_.nodes.push_back(location);
    }
    namenode_.tokens = false;
    namenode_.block_size = kBlock;
    service_.Serve(namenode_process_, &namenode_);
    ClientOptions options;
    options.user = "flink";
    options.packet_bytes = 64 << 10;
    files_ = NewFileSystem(options, client_machine()->process(), &stub_);
  }

  absl::StatusOr<std::string> Get(const std::string& path) {
    auto reader = files_->Open(path);
    if (!reader.ok()) return reader.status();
    std::string data((*reader)->length(), ' ');
    const absl::StatusOr<size_t> count = (*reader)->ReadAt(0, data);
    if (!count.ok()) return count.status();
    return data.substr(0, *count);
  }
  datanode::ReplicaDescription Replica(size_t i, size_t block, const std::string& path = "/f") {
    const v1::Block& expected = namenode_.files[path].blocks[block].block;
    return node(i).store->Describe(BlockId(expected.id())).value_or(datanode::ReplicaDescription());
  }

  testing::SimMachine* const namenode_machine_ = world().AddMachine("nn");
  testing::SimProcess* const namenode_process_ = namenode_machine_->StartProcess();
  FakeNamenode namenode_{&namenode_process_->clock()};
  testing::SimService<api::ClientNamenode> service_{namenode_machine_};
  testing::SimClientNamenode stub_{client_machine()->process(), &service_};
  std::unique_ptr<FileSystem> files_;
};

TEST_F(RealDatanodes, EdgeSizesComeBackIdentical) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{511}, size_t{512}, size_t{513}, size_t{65536}, size_t{65537}, kBlock, kBlock + 1}) {
    const std::string path = "/f" + std::to_string(size);
    const std::string data = datanode::Pattern(size, size);
    auto writer = files_->Create(path).value();
    ASSERT_TRUE(writer->Append(data).ok());
    ASSERT_TRUE(writer->Close().ok()) << size;
    EXPECT_EQ(Get(path).value(), data) << size;
    for (size_t block = 0; block < namenode_.files[path].blocks.size(); ++block) {
      for (size_t i = 0; i < 3; ++i) {
        const datanode::ReplicaDescription replica = Replica(i, block, path);
        EXPECT_EQ(replica.state, datanode::ReplicaState::kFinalized);
        EXPECT_EQ(replica.length, std::min(kBlock, size - block * kBlock));
      }
    }
  }
}

TEST_F(RealDatanodes, FlushesInsideChunksAreReadBackAtOnce) {
  auto writer = files_->Create("/f").value();
  const std::string data = datanode::Pattern(3000);
  for (size_t at = 0; at < data.size(); at += 300) {
    ASSERT_TRUE(writer->Append(data.substr(at, 300)).ok());
    ASSERT_TRUE((at % 600 == 0 ? writer->Flush() : writer->Sync()).ok());
    EXPECT_EQ(Get("/f").value(), data.substr(0, at + 300));
  }
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(Get("/f").value(), data);
}

class RealDatanodesLoseOne : public RealDatanodes, public ::testing::WithParamInterface<size_t> {};

TEST_P(RealDatanodesLoseOne, WhileStreaming) {
  const std::string data = datanode::Pattern(900'000);
  auto writer = files_->Create("/f").value();
  ASSERT_TRUE(writer->Append(data.substr(0, 300'100)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  node(GetParam()).process->Kill();
  ASSERT_TRUE(writer->Append(data.substr(300'100)).ok());
  const absl::Status closed = writer->Close();
  ASSERT_TRUE(closed.ok()) << closed;
  EXPECT_EQ(Get("/f").value(), data);
  EXPECT_THAT(namenode_.files["/f"].blocks[0].acknowledged, SizeIs(2));
  for (size_t i = 0; i < 3; ++i) {
    if (i == GetParam()) continue;
    EXPECT_EQ(Replica(i, 0).state, datanode::ReplicaState::kFinalized);
    EXPECT_EQ(Replica(i, 0).length, data.size());
    EXPECT_EQ(Replica(i, 0).stamp.value(), namenode_.files["/f"].blocks[0].block.generation_stamp());
  }
}

TEST_P(RealDatanodesLoseOne, BeforeTheCloseOfAFlushedBlock) {
  const std::string data = datanode::Pattern(1000);
  auto writer = files_->Create("/f").value();
  ASSERT_TRUE(writer->Append(data).ok());
  ASSERT_TRUE(writer->Sync().ok());
  node(GetParam()).process->Kill();
  const absl::Status closed = writer->Close();  // Only the last packet is left: stage 5.
  ASSERT_TRUE(closed.ok()) << closed;
  EXPECT_EQ(Get("/f").value(), data);
  EXPECT_THAT(namenode_.files["/f"].blocks[0].acknowledged, SizeIs(2));
}

INSTANTIATE_TEST_SUITE_P(FirstMiddleLast, RealDatanodesLoseOne, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace cairn::client
