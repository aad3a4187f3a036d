#include "client/src/xattr_names.h"

#include "tests/testing/matchers.h"

namespace cairn::client {
namespace {

using namespace cairn::testing;  // NOLINT: matchers of this test.

TEST(XattrNames, HaveANameSpaceAndAName) {
  const auto xattr = ParseXattrName("user.a.b");
  ASSERT_THAT(xattr, IsOk());
  EXPECT_EQ(xattr->name_space(), v1::XATTR_USER);
  EXPECT_EQ(xattr->name(), "a.b");
  EXPECT_EQ(XattrName(*xattr), "user.a.b");
  EXPECT_EQ(ParseXattrName("trusted.x")->name_space(), v1::XATTR_TRUSTED);
  EXPECT_EQ(ParseXattrName("security.x")->name_space(), v1::XATTR_SECURITY);
  EXPECT_EQ(ParseXattrName("system.x")->name_space(), v1::XATTR_SYSTEM);
  EXPECT_EQ(XattrName(*ParseXattrName("USER.X")), "user.X");
}

TEST(XattrNames, OthersAreRefused) {
  for (const char* text : {"", "a", ".a", "user", "raw.a", "users.a"}) {
    const auto refused = ParseXattrName(text);
    EXPECT_THAT(refused, HasKind(ErrorKind::kInvalidArgument)) << text;
    EXPECT_EQ(std::string(refused.status().message()),
              "An XAttr name must be prefixed with user/trusted/security/system, followed by a '.'");
  }
  EXPECT_EQ(std::string(ParseXattrName("user.").status().message()), "XAttr name cannot be empty.");
}

}  // namespace
}  // namespace cairn::client
