// What the front door says of a bad header, before anything else is looked at.

#include <optional>
#include <string>

#include "common/block_token.h"
#include "namenode/frontdoor/client_service.h"
#include "namenode/namespace/file_edit.h"
#include "tests/namenode/background_fixture.h"
#include "tests/testing/builders.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::IsEmpty;

v1::RequestHeader GoodHeader() {
  v1::RequestHeader header;
  header.set_client_id(std::string(kTestClientId));
  header.set_user("ada");
  header.set_client_name("client");
  header.set_sequence(1);
  header.set_slot_opened_ms(1);
  return header;
}

std::string Words(const absl::Status& status) {
  EXPECT_THAT(status, HasKind(ErrorKind::kInvalidArgument));
  return std::string(status.message());
}

TEST(RequestHeader, AGoodOneIsLetIn) {
  EXPECT_THAT(CheckReadHeader(v1::RequestHeader()), IsOk());  // A read needs nothing.
  EXPECT_THAT(CheckMutationHeader(GoodHeader()), IsOk());
  v1::RequestHeader longest = GoodHeader();
  longest.set_user(std::string(255, 'u'));
  longest.set_client_name(std::string(1024, 'c'));
  longest.set_slot(1023);
  EXPECT_THAT(CheckMutationHeader(longest), IsOk());
}

TEST(RequestHeader, AnythingTooLongOrMissingIsNamed) {
  v1::RequestHeader header = GoodHeader();
  header.set_client_id("short");
  EXPECT_EQ(Words(CheckReadHeader(header)), "header: a client id has 16 bytes, not 5");
  EXPECT_EQ(Words(CheckMutationHeader(header)), "header: a client id has 16 bytes, not 5");
  header = GoodHeader();
  header.clear_client_id();
  EXPECT_EQ(Words(CheckMutationHeader(header)), "header: a client id of 16 bytes is missing");
  header = GoodHeader();
  header.set_user(std::string(256, 'u'));
  EXPECT_EQ(Words(CheckReadHeader(header)), "header: a user name of 256 bytes is too long (at most 255)");
  header = GoodHeader();
  header.clear_user();
  EXPECT_EQ(Words(CheckMutationHeader(header)), "header: the user is missing");
  header = GoodHeader();
  header.set_client_name(std::string(1025, 'c'));
  EXPECT_EQ(Words(CheckReadHeader(header)), "header: a client name of 1025 bytes is too long (at most 1024)");
  header = GoodHeader();
  header.set_user("\xff");
  EXPECT_EQ(Words(CheckReadHeader(header)), "header: a user or client name is not UTF-8");
  header = GoodHeader();
  header.set_client_name("c\xc0\x80");
  EXPECT_EQ(Words(CheckReadHeader(header)), "header: a user or client name is not UTF-8");
  header = GoodHeader();
  header.set_slot(1024);
  EXPECT_EQ(Words(CheckMutationHeader(header)), "header: slot 1024 is not below 1024");
  header = GoodHeader();
  header.clear_slot_opened_ms();
  const absl::Status no_age = CheckMutationHeader(header);
  EXPECT_THAT(no_age, HasReason("SLOT_OPENED_MISSING"));
  EXPECT_EQ(Words(no_age),
            "header: call 1 in slot 0 does not say when its slot was opened; take the NameNode's time from any answer, as of "
            "getServerDefaults");
  header.set_sequence(0);  // Of a call that is not kept.
  EXPECT_THAT(CheckMutationHeader(header), IsOk());
}

class ReservedName : public Background {
 protected:
  static ReplicaPlane::Identity Identity() {
    ReplicaPlane::Identity identity;
    identity.keys.push_back(NewBlockTokenKey(1, std::string(32, 'k'), INT64_MAX));
    return identity;
  }
  template <class Request, class Response>
  void Refuses(const char* name, void (ClientService::*call)(api::CallContext, Request, api::Done<Response>)) {
    Request request;
    *request.mutable_header() = GoodHeader();
    request.mutable_header()->set_client_name(std::string(kRecoveryHolder));
    std::optional<absl::Status> answer;
    (service_.*call)(api::CallContext(), std::move(request), [&](const absl::StatusOr<Response>& response) { answer = response.status(); });
    ASSERT_TRUE(answer.has_value()) << name;  // At once.
    EXPECT_THAT(*answer, HasKind(ErrorKind::kInvalidArgument)) << name;
    EXPECT_EQ(std::string(answer->message()),
              "header: the client name cairn-namenode-recovery is the NameNode's own; a client needs another")
        << name;
  }

  LeaseMonitor leases_{LeaseMonitor::Options(), &access_, executor_.get()};
  ClientService service_{ClientService::Options(), Identity(), &access_, &replicas_, &leases_, {executor_.get()}, &process_->clock()};
};

TEST_F(ReservedName, NoCallMayBearTheNameOfTheHolderOfFilesUnderRecovery) {
#define CAIRN_REFUSES(Name) Refuses(#Name, &ClientService::Name);
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_REFUSES)
#undef CAIRN_REFUSES
  EXPECT_THAT(access_.submitted(), IsEmpty());
}

TEST_F(ReservedName, NorDoesItOpenAFileThatIsBeingRecovered) {
  space_.Must(CreateMutation("/f", "writer", {1, 2, 3}));
  v1::Mutation recover = MutationOf("taker");
  recover.mutable_recover_lease()->set_path("/f");
  recover.mutable_recover_lease()->set_by_force(true);
  space_.Must(recover);
  v1::Mutation complete = MutationOf(kRecoveryHolder);
  complete.mutable_complete()->set_path("/f");
  EXPECT_THAT(space_.Apply(complete), HasKind(ErrorKind::kLeaseExpired));
}

}  // namespace
}  // namespace cairn::namenode
