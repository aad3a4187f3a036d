// What a client of Hadoop IPC sends says the same whether it comes at once or in pieces, and nothing makes the parser stumble.

#include <algorithm>
#include <variant>

#include <google/protobuf/stubs/logging.h>

#include "common/check.h"
#include "common/hadoop_ipc/request_parser.h"
#include "tests/common/hadoop_ipc_bytes.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using cairn::ipc::Call;
using cairn::ipc::RequestParser;

constexpr size_t kMaxFrameBytes = 1 << 16;

// The kinds of the events, and what calls ask, as text.
void Drain(RequestParser* parser, std::string* said) {
  for (;;) {
    const RequestParser::Event event = parser->Next();
    if (std::holds_alternative<RequestParser::NeedsMore>(event)) return;
    said->push_back(static_cast<char>('0' + event.index()));
    if (const auto* call = std::get_if<Call>(&event)) *said += call->method + "/" + call->request;
    if (std::holds_alternative<RequestParser::Refused>(event)) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer silent;  // Of strings that are no UTF-8, which a client may send.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  RequestParser whole(kMaxFrameBytes);
  std::string at_once;
  whole.Feed(bytes);
  Drain(&whole, &at_once);

  RequestParser pieces(kMaxFrameBytes);
  std::string in_pieces;
  const size_t step = size == 0 ? 1 : 1 + data[size - 1] % 64;
  for (size_t at = 0; at < size; at += step) {
    if (!in_pieces.empty() && in_pieces.back() == '5') break;  // Refused: a session reads no more.
    pieces.Feed(bytes.substr(at, step));
    Drain(&pieces, &in_pieces);
  }
  CAIRN_CHECK(at_once.starts_with(in_pieces) || in_pieces.starts_with(at_once), "other events from the same bytes in pieces");
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  using namespace cairn::testing;  // NOLINT(google-build-using-namespace)
  return {IpcPreamble() + IpcContext() + IpcGetFileInfo() + IpcPing(), IpcSaslPreamble() + IpcNegotiate() + IpcContext() + IpcGetFileInfo(),
          "GET / HTTP/1.1\r\n\r\n", IpcPreamble() + IpcContext() + IpcCall(1, "getListing", std::string(300, 'x'))};
}
