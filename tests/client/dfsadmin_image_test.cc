#include "client/cli/dfsadmin_image.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/crc32c.h"
#include "common/env/env.h"
#include "common/error.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A NameNode with one checkpoint, which sends at most 1,000 bytes at a time.
class ImageVerbsTest : public ::testing::Test {
 protected:
  ImageVerbsTest() {
    files_["VERSION"] = "{}";
    files_["namespace/000012.sst"] = std::string(2500, 'x') + "end";
    files_["namespace/000013.log"] = "";
    AskImage ask;
    ask.save = [this](v1::SaveNamespaceRequest) -> absl::StatusOr<v1::SaveNamespaceResponse> {
      if (!refusal_.ok()) return refusal_;
      v1::SaveNamespaceResponse response;
      response.set_path("/nn/checkpoints/c1");
      response.set_applied_index(7);
      response.set_took_us(3210);
      return response;
    };
    ask.get = [this](v1::GetImageRequest) -> absl::StatusOr<v1::GetImageResponse> {
      if (!refusal_.ok()) return refusal_;
      v1::GetImageResponse response;
      response.set_name(name_);
      for (const auto& [name, content] : files_) {
        v1::GetImageResponse::File& file = *response.add_files();
        file.set_name(name);
        file.set_size_bytes(content.size() + (name == shorter_ ? 1 : 0));
      }
      return response;
    };
    ask.read = [this](const v1::ReadImageRequest& request) -> absl::StatusOr<v1::ReadImageResponse> {
      ++reads_;
      if (reads_ == interrupt_at_) interrupted_ = true;
      v1::ReadImageResponse response;
      response.set_data(files_.at(request.file()).substr(request.offset(), std::min<uint64_t>(request.length(), 1000)));
      response.set_crc32c(Crc32c({response.data().data(), response.data().size()}) + (reads_ == damage_at_ ? 1 : 0));
      return response;
    };
    ask.confirm = [this](v1::ConfirmRollbackRequest) -> absl::StatusOr<v1::ConfirmRollbackResponse> {
      if (!refusal_.ok()) return refusal_;
      v1::ConfirmRollbackResponse response;
      response.set_was_kept(kept_);
      response.set_unknown_blocks(kept_ ? 5 : 0);
      return response;
    };
    verbs_ = ImageVerbs(ask, &env_->files());
    shell_.out = &out_;
    shell_.err = &err_;
    shell_.interrupted = &interrupted_;
  }
  int Run(const std::vector<std::string>& words) { return RunVerb("cairn dfsadmin", verbs_, words, &shell_); }
  // Nothing is left of an attempt that failed.
  void ExpectNothingLeft() { EXPECT_TRUE(fs::is_empty(local_.path())); }

  std::map<std::string, std::string> files_;
  std::string name_ = "20260101T000000Z-7", shorter_;
  absl::Status refusal_;
  bool kept_ = true;
  int reads_ = 0, damage_at_ = -1, interrupt_at_ = -1;
  std::atomic<bool> interrupted_{false};
  const std::unique_ptr<Env> env_ = NewRealEnv();
  std::ostringstream out_, err_;
  Shell shell_;
  std::vector<Verb> verbs_;
  const testing::TemporaryDirectory local_;
};

TEST_F(ImageVerbsTest, SaveNamespaceSaysWhereAndHowLong) {
  EXPECT_EQ(Run({"-saveNamespace"}), kSuccess);
  EXPECT_EQ(out_.str(), "Save namespace successful: /nn/checkpoints/c1 (batch 7) in 3.2 ms\n");
  refusal_ = MakeError(ErrorKind::kPermission, "Access denied for user eve. Superuser privilege is required");
  EXPECT_EQ(Run({"-saveNamespace"}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("saveNamespace: Access denied for user eve. Superuser privilege is required"));
}

TEST_F(ImageVerbsTest, FetchImageBringsEveryFileWhole) {
  EXPECT_EQ(Run({"-fetchImage", local_.path()}), kSuccess) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("3 files, 2505 bytes"));
  for (const auto& [name, content] : files_) {
    std::ifstream file(local_.path() + "/" + name_ + "/" + name, std::ios::binary);
    ASSERT_TRUE(file) << name;
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), content) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(local_.path()), {}), 1);
  EXPECT_EQ(Run({"-fetchImage", local_.path()}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("File exists"));
}

TEST_F(ImageVerbsTest, FetchImageLeavesNothingOfADamagedShortOrInterruptedOne) {
  damage_at_ = 3;
  EXPECT_EQ(Run({"-fetchImage", local_.path()}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("namespace/000012.sst: bytes from 1000 arrived damaged"));
  ExpectNothingLeft();
  damage_at_ = -1;
  shorter_ = "namespace/000012.sst";
  EXPECT_EQ(Run({"-fetchImage", local_.path()}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("ended after 2503 of 2504 bytes"));
  ExpectNothingLeft();
  shorter_ = "";
  interrupt_at_ = reads_ + 2;
  EXPECT_NE(Run({"-fetchImage", local_.path()}), kSuccess);
  EXPECT_THAT(err_.str(), HasSubstr("interrupted"));
  ExpectNothingLeft();
}

TEST_F(ImageVerbsTest, FetchImageWritesOnlyBelowItsDirectory) {
  for (const char* name : {"../evil", "/tmp/cairn-evil", "namespace/../../evil", ""}) {
    files_[name] = "x";
    EXPECT_EQ(Run({"-fetchImage", local_.path()}), kFailure) << name;
    ExpectNothingLeft();
    files_.erase(name);
  }
  name_ = "../evil";
  EXPECT_EQ(Run({"-fetchImage", local_.path()}), kFailure);
  ExpectNothingLeft();
  EXPECT_EQ(Run({"-fetchImage", local_.path() + "/none"}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("No such directory"));
  EXPECT_EQ(Run({"-fetchImage"}), kUsage);
}

TEST_F(ImageVerbsTest, ConfirmRollbackSaysWhatGoes) {
  EXPECT_EQ(Run({"-confirmRollback"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("5 blocks that the namespace does not know are deleted from now on"));
  kept_ = false;
  EXPECT_EQ(Run({"-confirmRollback"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("Nothing to confirm"));
}

}  // namespace
}  // namespace cairn::cli
