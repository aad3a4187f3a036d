#include "common/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/types.pb.h"
#include "common/status.h"

namespace cairn {
namespace {

// To a peer and back.
absl::Status Travelled(const absl::Status& status) {
  v1::ErrorDetail detail;
  EXPECT_TRUE(detail.ParseFromString(ToDetail(status).SerializeAsString()));
  return FromDetail(detail);
}

TEST(Error, KeepsItsKindWhateverBytesItsTextsHold) {
  Error error;
  error.kind = ErrorKind::kNotFound;
  error.message = "no \xff\xfe here";
  error.path = std::string("/caf\xe9\0x", 8);
  error.nodes = {"host\x80"};
  const absl::Status status = Travelled(MakeError(std::move(error)));
  EXPECT_EQ(KindOf(status), ErrorKind::kNotFound);
  EXPECT_EQ(status.message(), "no \\xff\\xfe here");
  EXPECT_EQ(ErrorOf(status)->path, std::string("/caf\\xe9\0x", 11));
  EXPECT_EQ(ErrorOf(status)->nodes[0], "host\\x80");
}

TEST(Error, KeepsItsKindWhenAnnotatedWithBadBytes) {
  const absl::Status status = Travelled(Annotate(MakeError(ErrorKind::kQuota, "full"), "put /a\xc3"));
  EXPECT_EQ(KindOf(status), ErrorKind::kQuota);
  EXPECT_EQ(status.message(), "put /a\\xc3: full");
}

TEST(Error, LeavesGoodUtf8AsItIs) {
  for (const char* text : {"", "plain", "caf\u00e9", "\u65e5\u672c", "\U0001f600 end", "\u0800\ud7ff\ue000\U0010ffff"}) {
    EXPECT_EQ(MakeError(ErrorKind::kNotFound, text).message(), text);
    EXPECT_EQ(KindOf(Travelled(MakeError(ErrorKind::kNotFound, text))), ErrorKind::kNotFound);
  }
}

TEST(Error, EscapesWhatOnlyLooksLikeUtf8) {
  const std::pair<const char*, const char*> cases[] = {
      {"\xc0\x80", "\\xc0\\x80"},                    // Overlong.
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},           // Overlong.
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // A surrogate.
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // Above U+10FFFF.
      {"\xe2\x82", "\\xe2\\x82"},                    // Cut off.
      {"\xe2\x82z", "\\xe2\\x82z"},
      {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
      {"a\xf8", "a\\xf8"},
  };
  for (const auto& [bytes, shown] : cases) {
    EXPECT_EQ(MakeError(ErrorKind::kNotFound, bytes).message(), shown);
    EXPECT_EQ(KindOf(Travelled(MakeError(ErrorKind::kNotFound, bytes))), ErrorKind::kNotFound);
  }
}

TEST(Error, OfAStatusWithoutAKindTravelsAsUnknown) {
  const absl::Status status = Travelled(absl::InternalError("odd \xff"));
  EXPECT_EQ(KindOf(status), ErrorKind::kNone);
  EXPECT_EQ(status.message(), "odd \\xff");
}

}  // namespace
}  // namespace cairn
