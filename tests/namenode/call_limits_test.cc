// What the front door refuses before it looks at the namespace, and in which words.

#include "namenode/frontdoor/call_limits.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using testing::HasKind;
using testing::IsOk;

v1::RequestHeader GoodHeader() {
  v1::RequestHeader header;
  header.set_client_id(std::string(testing::kTestClientId));
  header.set_user("ada");
  header.set_client_name("me");
  return header;
}

// The words of a refusal as bad input; of a mutation's header.
template <class Change>
std::string Words(Change change) {
  v1::RequestHeader header = GoodHeader();
  change(header);
  const absl::Status status = CheckMutationHeader(header);
  EXPECT_THAT(status, HasKind(ErrorKind::kInvalidArgument));
  return std::string(status.message());
}

TEST(CallLimits, AGoodHeaderPasses) {
  v1::RequestHeader header = GoodHeader();
  EXPECT_THAT(CheckMutationHeader(header), IsOk());
  header.set_sequence(1);
  header.set_slot(1023);
  header.set_slot_opened_ms(1);
  header.set_user(std::string(kMaxUserBytes, 'u'));
  header.set_client_name(std::string(kMaxClientNameBytes, 'n'));
  EXPECT_THAT(CheckMutationHeader(header), IsOk());
  EXPECT_THAT(CheckReadHeader(v1::RequestHeader()), IsOk());  // A read needs none of it.
}

TEST(CallLimits, HeadersSayWhatIsWrong) {
  EXPECT_EQ(Words([](v1::RequestHeader& header) { header.set_client_id("short"); }), "header: a client id has 16 bytes, not 5");
  EXPECT_EQ(Words([](v1::RequestHeader& header) { header.clear_client_id(); }), "header: a client id of 16 bytes is missing");
  EXPECT_EQ(Words([](v1::RequestHeader& header) { header.set_slot(1024); }), "header: slot 1024 is not below 1024");
  EXPECT_EQ(Words([](v1::RequestHeader& header) { header.clear_user(); }), "header: the user is missing");
  EXPECT_EQ(Words([](v1::RequestHeader& header) { header.set_user(std::string(kMaxUserBytes + 1, 'u')); }),
            fmt::format("header: a user name of {} bytes is too long (at most {})", kMaxUserBytes + 1, kMaxUserBytes));
  EXPECT_EQ(Words([](v1::RequestHeader& header) { header.set_client_name(std::string(kMaxClientNameBytes + 1, 'n')); }),
            fmt::format("header: a client name of {} bytes is too long (at most {})", kMaxClientNameBytes + 1, kMaxClientNameBytes));
  EXPECT_EQ(Words([](v1::RequestHeader& header) { header.set_sequence(9); }),
            "header: call 9 in slot 0 does not say when its slot was opened; take the NameNode's time from any answer, as of "
            "getServerDefaults");
}

TEST(CallLimits, ReadsWithABadHeaderAreRefusedToo) {
  v1::RequestHeader header;
  header.set_client_id("short");
  EXPECT_EQ(CheckReadHeader(header).message(), "header: a client id has 16 bytes, not 5");
  header = GoodHeader();
  header.set_user(std::string(kMaxUserBytes + 1, 'u'));
  EXPECT_THAT(CheckReadHeader(header), HasKind(ErrorKind::kInvalidArgument));
}

TEST(CallLimits, PathsOfOneCallAreBounded) {
  v1::DeleteManyRequest deletes;
  for (int i = 0; i < kMaxDeletePaths; ++i) deletes.add_paths("/x");
  EXPECT_THAT(CheckDeleteMany(deletes), IsOk());
  deletes.add_paths("/x");
  EXPECT_EQ(CheckDeleteMany(deletes).message(),
            fmt::format("deleteMany: {} paths are too many for one call (at most {})", kMaxDeletePaths + 1, kMaxDeletePaths));
  deletes.clear_paths();
  deletes.add_paths(std::string(kMaxDeletePathBytes, '/'));
  EXPECT_THAT(CheckDeleteMany(deletes), IsOk());
  deletes.add_paths("/");
  EXPECT_EQ(CheckDeleteMany(deletes).message(), fmt::format("deleteMany: {} bytes of paths are too many for one call (at most {})",
                                                            kMaxDeletePathBytes + 1, kMaxDeletePathBytes));
  EXPECT_THAT(CheckDeleteMany(deletes), HasKind(ErrorKind::kInvalidArgument));

  v1::GetLocationsManyRequest located;
  for (int i = 0; i < kMaxLocatedPaths; ++i) located.add_paths("/x");
  EXPECT_THAT(CheckLocatedPaths(located), IsOk());
  located.add_paths("/x");
  EXPECT_EQ(CheckLocatedPaths(located).message(),
            fmt::format("getLocationsMany: {} paths are too many for one call (at most {})", kMaxLocatedPaths + 1, kMaxLocatedPaths));
  located.clear_paths();
  located.add_paths(std::string(kMaxLocatedPathBytes + 1, '/'));
  EXPECT_EQ(CheckLocatedPaths(located).message(), fmt::format("getLocationsMany: {} bytes of paths are too many for one call (at most {})",
                                                              kMaxLocatedPathBytes + 1, kMaxLocatedPathBytes));
}

}  // namespace
}  // namespace cairn::namenode
