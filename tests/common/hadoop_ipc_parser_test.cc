#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/hadoop_ipc/answers.h"
#include "common/hadoop_ipc/request_parser.h"
#include "tests/common/hadoop_ipc_bytes.h"

namespace cairn::ipc {
namespace {

using ::cairn::testing::Delimited;
using ::cairn::testing::FromHex;
using ::cairn::testing::IpcCall;
using ::cairn::testing::IpcClientId;
using ::cairn::testing::IpcContext;
using ::cairn::testing::IpcFrame;
using ::cairn::testing::IpcGetFileInfo;
using ::cairn::testing::IpcHeader;
using ::cairn::testing::IpcNegotiate;
using ::cairn::testing::IpcPing;
using ::cairn::testing::IpcPreamble;
using ::cairn::testing::IpcSaslPreamble;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kMaxFrame = 1 << 20;

// All that `bytes` say, up to where more are needed; with the end of a refusal.
std::vector<RequestParser::Event> EventsOf(RequestParser* parser, std::string_view bytes) {
  parser->Feed(bytes);
  std::vector<RequestParser::Event> events;
  for (;;) {
    events.push_back(parser->Next());
    if (std::holds_alternative<RequestParser::NeedsMore>(events.back())) {
      events.pop_back();
      return events;
    }
    if (std::holds_alternative<RequestParser::Refused>(events.back())) return events;
  }
}

std::vector<RequestParser::Event> EventsOf(std::string_view bytes) {
  RequestParser parser(kMaxFrame);
  return EventsOf(&parser, bytes);
}

// The header of the refusal that `bytes` get; nothing if they get none, or one without words.
std::optional<hdfs::RpcResponseHeaderProto> RefusalOf(std::string_view bytes) {
  const std::vector<RequestParser::Event> events = EventsOf(bytes);
  if (events.empty()) return std::nullopt;
  const auto* refused = std::get_if<RequestParser::Refused>(&events.back());
  if (refused == nullptr || refused->answer.size() < 6) return std::nullopt;
  hdfs::RpcResponseHeaderProto header;
  // Its frame has nothing but a header, here longer than 127 bytes or not.
  const size_t prefix = (static_cast<uint8_t>(refused->answer[4]) & 0x80) != 0 ? 6 : 5;
  if (!header.ParseFromString(refused->answer.substr(prefix))) return std::nullopt;
  return header;
}

TEST(RequestParser, TakesTheHandshakeAndTheFirstCallFromOneSegment) {
  const std::vector<RequestParser::Event> events = EventsOf(IpcPreamble() + IpcContext() + IpcGetFileInfo());
  ASSERT_EQ(events.size(), 2u);
  ASSERT_TRUE(std::holds_alternative<RequestParser::Ready>(events[0]));
  EXPECT_EQ(std::get<RequestParser::Ready>(events[0]).caller.user, "alice");
  ASSERT_TRUE(std::holds_alternative<Call>(events[1]));
  const Call& call = std::get<Call>(events[1]);
  EXPECT_EQ(call.id, 0);
  EXPECT_EQ(call.client_id, IpcClientId());
  EXPECT_EQ(call.retry_count, 0);
  EXPECT_EQ(call.method, "getFileInfo");
  EXPECT_EQ(call.protocol, cairn::testing::kClientProtocol);
  EXPECT_EQ(call.version, 1u);
  EXPECT_EQ(call.request, FromHex("0a 02 2f 61"));
}

TEST(RequestParser, SaysTheSameWhenEveryByteComesAlone) {
  RequestParser parser(kMaxFrame);
  std::vector<RequestParser::Event> events;
  for (const char byte : IpcPreamble() + IpcContext() + IpcPing() + IpcGetFileInfo())
    for (RequestParser::Event& event : EventsOf(&parser, std::string_view(&byte, 1))) events.push_back(std::move(event));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<RequestParser::Ready>(events[0]));
  EXPECT_TRUE(std::holds_alternative<RequestParser::Ping>(events[1]));
  ASSERT_TRUE(std::holds_alternative<Call>(events[2]));
  EXPECT_EQ(std::get<Call>(events[2]).request, FromHex("0a 02 2f 61"));
  EXPECT_FALSE(parser.midway());
}

TEST(RequestParser, NegotiatesSaslAwayAndGoesOn) {
  const std::vector<RequestParser::Event> events = EventsOf(IpcSaslPreamble() + IpcNegotiate() + IpcContext() + IpcGetFileInfo());
  ASSERT_EQ(events.size(), 3u);
  ASSERT_TRUE(std::holds_alternative<RequestParser::Reply>(events[0]));
  EXPECT_EQ(std::get<RequestParser::Reply>(events[0]).bytes, FromHex("00 00 00 12 0e 08 df ff ff ff 0f 10 00 18 09 3a 00 40 01 02 10 00"));
  EXPECT_TRUE(std::holds_alternative<RequestParser::Ready>(events[1]));
  EXPECT_TRUE(std::holds_alternative<Call>(events[2]));
}

TEST(RequestParser, ExpectsNothingOfAClientThatChoseSimpleByItself) {
  hdfs::RpcSaslProto sasl;
  sasl.set_state(hdfs::RpcSaslProto::INITIATE);
  sasl.add_auths()->set_method("SIMPLE");
  sasl.mutable_auths(0)->set_mechanism("");
  const std::string initiate = IpcFrame(Delimited(IpcHeader(kSaslId).SerializeAsString()) + Delimited(sasl.SerializeAsString()));
  const std::vector<RequestParser::Event> events = EventsOf(IpcSaslPreamble() + initiate + IpcContext());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<RequestParser::Ping>(events[0]));
  EXPECT_TRUE(std::holds_alternative<RequestParser::Ready>(events[1]));

  sasl.mutable_auths(0)->set_method("KERBEROS");
  const std::string kerberos = IpcFrame(Delimited(IpcHeader(kSaslId).SerializeAsString()) + Delimited(sasl.SerializeAsString()));
  const auto refusal = RefusalOf(IpcSaslPreamble() + kerberos);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->exceptionclassname(), "javax.security.sasl.SaslException");
  EXPECT_EQ(refusal->errordetail(), hdfs::RpcResponseHeaderProto::FATAL_UNAUTHORIZED);
}

TEST(RequestParser, TellsABrowserWhereItIs) {
  const std::vector<RequestParser::Event> events = EventsOf("GET / HTTP/1.1\r\n\r\n");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(std::get<RequestParser::Refused>(events[0]).answer, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(std::get<RequestParser::Refused>(events[0]).answer, HasSubstr("Hadoop IPC"));
}

TEST(RequestParser, HasNoWordsForWhatIsNoHadoopClient) {
  const std::vector<RequestParser::Event> events = EventsOf("SSH-2.0");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<RequestParser::Refused>(events[0]).answer, "");
}

TEST(RequestParser, TellsAClientOfAnotherVersionWhichItIs) {
  const auto refusal = RefusalOf(FromHex("68 72 70 63 08 00 00"));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->callid(), 0xFFFFFFFFu);
  EXPECT_EQ(refusal->status(), hdfs::RpcResponseHeaderProto::FATAL);
  EXPECT_EQ(refusal->exceptionclassname(), "org.apache.hadoop.ipc.RPC$VersionMismatch");
  EXPECT_EQ(refusal->errordetail(), hdfs::RpcResponseHeaderProto::FATAL_VERSION_MISMATCH);
  EXPECT_EQ(refusal->serveripcversionnum(), 9u);
  EXPECT_THAT(refusal->errormsg(), HasSubstr("client version 8"));
}

TEST(RequestParser, RefusesFramesThatAreTooLargeBeforeTheyCome) {
  RequestParser parser(100);
  EXPECT_EQ(EventsOf(&parser, IpcPreamble() + IpcContext()).size(), 1u);
  const std::vector<RequestParser::Event> events = EventsOf(&parser, FromHex("00 00 00 65"));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<RequestParser::Refused>(events[0]));
  RequestParser negative(100);
  EXPECT_TRUE(std::holds_alternative<RequestParser::Refused>(EventsOf(&negative, IpcPreamble() + FromHex("ff ff ff ff")).back()));
}

TEST(RequestParser, RefusesWhatBreaksTheOrderOfTheHandshake) {
  constexpr auto kInvalid = hdfs::RpcResponseHeaderProto::FATAL_INVALID_RPC_HEADER;
  const std::string begun = IpcPreamble() + IpcContext();
  const struct {
    std::string bytes;
    const char* words;
  } cases[] = {
      {IpcPreamble() + IpcGetFileInfo(), "a call before the connection context"},
      {begun + IpcContext(), "a second connection context"},
      {IpcPreamble() + IpcNegotiate(), "SASL on a connection that did not ask for it"},
      {IpcSaslPreamble() + IpcContext(), "has to negotiate first"},
      {begun + IpcFrame(Delimited(IpcHeader(-7).SerializeAsString())), "call id -7 is not known here"},
  };
  for (const auto& each : cases) {
    const auto refusal = RefusalOf(each.bytes);
    ASSERT_TRUE(refusal) << each.words;
    EXPECT_EQ(refusal->errordetail(), kInvalid) << each.words;
    EXPECT_THAT(refusal->errormsg(), HasSubstr(each.words));
    EXPECT_EQ(refusal->clientid(), "");
  }
}

TEST(RequestParser, RefusesHeadersOfAnotherKind) {
  hdfs::RpcRequestHeaderProto header = IpcHeader(1);
  header.set_rpckind(hdfs::RPC_WRITABLE);
  const auto kind = RefusalOf(IpcPreamble() + IpcContext() + IpcFrame(Delimited(header.SerializeAsString())));
  ASSERT_TRUE(kind);
  EXPECT_EQ(kind->errordetail(), hdfs::RpcResponseHeaderProto::FATAL_INVALID_RPC_HEADER);
  EXPECT_EQ(kind->callid(), 1u);
  header = IpcHeader(1);
  header.clear_rpcop();
  EXPECT_TRUE(RefusalOf(IpcPreamble() + IpcContext() + IpcFrame(Delimited(header.SerializeAsString()))));
}

TEST(RequestParser, RefusesBytesThatDoNotParse) {
  constexpr auto kDeserializing = hdfs::RpcResponseHeaderProto::FATAL_DESERIALIZING_REQUEST;
  const std::string begun = IpcPreamble() + IpcContext();
  const std::string header = Delimited(IpcHeader(1).SerializeAsString());
  for (const std::string& body : {std::string(), std::string("\x05"), std::string("\xff\xff\xff\xff\xff\xff"), std::string("\x02\x08\x02"),
                                  header, header + "\x03zzz", IpcCall(1, "x", "").substr(4, 30)}) {
    const auto refusal = RefusalOf(begun + IpcFrame(body));
    ASSERT_TRUE(refusal) << body.size();
    EXPECT_EQ(refusal->errordetail(), kDeserializing);
  }
}

TEST(RequestParser, SkipsFieldsThatItDoesNotKnow) {
  std::string header = IpcHeader(4).SerializeAsString();
  header += FromHex("40 07 4a 01 78 ba 3e 01 79");  // State id, router's state, and a field of tomorrow.
  hdfs::RequestHeaderProto called;
  called.set_methodname("m");
  called.set_declaringclassprotocolname("p");
  called.set_clientprotocolversion(1);
  const std::string frame = IpcFrame(Delimited(header) + Delimited(called.SerializeAsString()) + Delimited(""));
  const std::vector<RequestParser::Event> events = EventsOf(IpcPreamble() + IpcContext() + frame);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<Call>(events[1]).id, 4);
  EXPECT_EQ(std::get<Call>(events[1]).request, "");
}

TEST(RequestParser, TakesTheRealUserForOneWhoNamesNobodyElse) {
  hdfs::IpcConnectionContextProto context;
  context.mutable_userinfo()->set_realuser("bob");
  const std::string frame =
      IpcFrame(Delimited(IpcHeader(kConnectionContextId).SerializeAsString()) + Delimited(context.SerializeAsString()));
  const std::vector<RequestParser::Event> events = EventsOf(IpcPreamble() + frame);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<RequestParser::Ready>(events[0]).caller.user, "bob");
  EXPECT_EQ(std::get<RequestParser::Ready>(events[0]).caller.real_user, "");
}

TEST(RequestParser, KeepsManyCallsInOrderWhateverTheirSize) {
  RequestParser parser(kMaxFrame);
  ASSERT_EQ(EventsOf(&parser, IpcPreamble() + IpcContext()).size(), 1u);
  std::string bytes;
  for (int32_t id = 0; id < 200; ++id) bytes += IpcCall(id, "m", std::string(static_cast<size_t>(id) * 37, 'x'));
  int32_t next = 0;
  for (size_t at = 0; at < bytes.size(); at += 1000) {
    for (const RequestParser::Event& event : EventsOf(&parser, std::string_view(bytes).substr(at, 1000))) {
      const Call& call = std::get<Call>(event);
      ASSERT_EQ(call.id, next);
      ASSERT_EQ(call.request.size(), static_cast<size_t>(next) * 37);
      ++next;
    }
  }
  EXPECT_EQ(next, 200);
}

TEST(IpcAnswers, AreTheBytesThatHadoopWrites) {
  EXPECT_EQ(EncodeAnswer(0, IpcClientId(), 0, std::string()),
            FromHex("00 00 00 1c 1a 08 00 10 00 18 09 3a 10") + IpcClientId() + FromHex("40 00 00"));
  EXPECT_EQ(EncodeAnswer(5, IpcClientId(), 0, Failure{"java.io.FileNotFoundException", "File does not exist: /a"}),
            FromHex("00 00 00 55 54 08 05 10 01 18 09 22 1d") + "java.io.FileNotFoundException" + FromHex("2a 17") +
                "File does not exist: /a" + FromHex("30 01 3a 10") + IpcClientId() + FromHex("40 00"));
  EXPECT_EQ(EncodeSaslSuccess(), FromHex("00 00 00 12 0e 08 df ff ff ff 0f 10 00 18 09 3a 00 40 01 02 10 00"));
}

TEST(IpcAnswers, CountLongMessagesAsVarints) {
  const std::string frame = EncodeAnswer(1, IpcClientId(), 3, std::string(300, 'x'));
  EXPECT_THAT(frame, ::testing::EndsWith(FromHex("40 06 ac 02") + std::string(300, 'x')));
  EXPECT_EQ(frame.substr(0, 4), FromHex("00 00 01 49"));
}

}  // namespace
}  // namespace cairn::ipc
