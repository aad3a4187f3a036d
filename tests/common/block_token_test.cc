#include "common/block_token.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace cairn {
namespace {

using testing::HasKind;
using testing::IsOk;

class BlockTokens : public ::testing::Test {
 protected:
  static BlockTokenClaims Claims() {
    BlockTokenClaims claims;
    claims.pool_id = "0123456789abcdef";
    claims.block = BlockId(0x1230);
    claims.stamp = GenerationStamp(1001);
    claims.modes = static_cast<uint8_t>(TokenMode::kRead) | static_cast<uint8_t>(TokenMode::kWrite);
    claims.epoch = Epoch(3);
    claims.expires_ms = 5000;
    return claims;
  }
  absl::Status Check(std::string_view token, TokenMode mode = TokenMode::kRead, int64_t now_ms = 5000) const {
    return CheckBlockToken(token, keys_, "0123456789abcdef", BlockId(0x1230), GenerationStamp(1001), mode, now_ms);
  }

  const std::vector<v1::BlockTokenKey> keys_ = {NewBlockTokenKey(6, "older", 9000), NewBlockTokenKey(7, "secret", 9000)};
};

TEST_F(BlockTokens, OneThatWasSealedIsGoodForWhatItSays) {
  const std::string token = SealBlockToken(keys_[1], Claims());
  EXPECT_THAT(Check(token), IsOk());
  EXPECT_THAT(Check(token, TokenMode::kWrite), IsOk());
  EXPECT_THAT(Check(SealBlockToken(keys_[0], Claims())), IsOk());
}

TEST_F(BlockTokens, IsTheHmacOfItsClaims) {
  const std::string token = SealBlockToken(NewBlockTokenKey(1, std::string(32, 'k'), 0), BlockTokenClaims());
  // Computed with Python's hmac: version 1, key 1, and zeros.
  EXPECT_EQ(token.substr(token.size() - 4), std::string("\x68"
                                                        "\xe0"
                                                        "\x2f"
                                                        "\x22"));
}

TEST_F(BlockTokens, ASealerSealsEachAsIfItWereItsFirst) {
  const BlockTokenSealer sealer(keys_[1]);
  BlockTokenClaims other = Claims();
  other.block = BlockId(0x4560);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sealer.Seal(Claims()), SealBlockToken(keys_[1], Claims()));
    EXPECT_EQ(sealer.Seal(other), SealBlockToken(keys_[1], other));
  }
}

TEST_F(BlockTokens, AnyChangedByteIsRefused) {
  const std::string token = SealBlockToken(keys_[1], Claims());
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THAT(Check(changed), HasKind(ErrorKind::kAccessToken)) << i;
  }
  EXPECT_THAT(Check(token.substr(1)), HasKind(ErrorKind::kAccessToken));
  EXPECT_THAT(Check(""), HasKind(ErrorKind::kAccessToken));
}

TEST_F(BlockTokens, ARefusalSaysWhatDiffers) {
  const auto reason = [this](auto change, TokenMode mode = TokenMode::kRead, int64_t now_ms = 5000) {
    BlockTokenClaims claims = Claims();
    change(claims);
    return std::string(ReasonOf(Check(SealBlockToken(keys_[1], claims), mode, now_ms)));
  };
  EXPECT_EQ(reason([](BlockTokenClaims& claims) { claims.pool_id[0] = 'x'; }), "WRONG_POOL");
  EXPECT_EQ(reason([](BlockTokenClaims& claims) { claims.block = BlockId(0x1240); }), "WRONG_BLOCK");
  EXPECT_EQ(reason([](BlockTokenClaims& claims) { claims.stamp = GenerationStamp(1000); }), "WRONG_STAMP");
  EXPECT_EQ(reason([](BlockTokenClaims&) {}, TokenMode::kTransfer), "WRONG_MODE");
  EXPECT_EQ(reason([](BlockTokenClaims&) {}, TokenMode::kRead, 5001), "EXPIRED");
  EXPECT_EQ(ReasonOf(Check(SealBlockToken(NewBlockTokenKey(8, "new", 0), Claims()))), "UNKNOWN_KEY");
  EXPECT_EQ(ReasonOf(Check(SealBlockToken(NewBlockTokenKey(7, "forged", 0), Claims()))), "BAD_TOKEN");
}

}  // namespace
}  // namespace cairn
