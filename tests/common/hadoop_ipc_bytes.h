#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <google/protobuf/message_lite.h>

#include "common/hadoop_ipc/answers.h"
#include "hdfs/ipc.pb.h"

// What a client of Hadoop IPC sends, for tests.
namespace cairn::testing {

inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  int high = -1;
  for (const char c : hex) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<char>(high * 16 + digit));
      high = -1;
    }
  }
  return bytes;
}

inline constexpr std::string_view kClientProtocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

inline std::string IpcClientId() { return FromHex("00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f"); }
inline std::string IpcPreamble() { return FromHex("68 72 70 63 09 00 00"); }
inline std::string IpcSaslPreamble() { return FromHex("68 72 70 63 09 00 df"); }
// Of user alice.
inline std::string IpcContext() {
  return FromHex("00 00 00 55 1a 08 02 10 00 18 05 22 10") + IpcClientId() + FromHex("28 01 39 12 07 0a 05 61 6c 69 63 65 1a 2e") +
         std::string(kClientProtocol);
}
inline std::string IpcNegotiate() { return FromHex("00 00 00 0e 0a 08 02 10 00 18 41 22 00 28 01 02 10 01"); }
inline std::string IpcPing() { return FromHex("00 00 00 0b 0a 08 02 10 00 18 07 22 00 28 01"); }
// Call 0: getFileInfo("/a").
inline std::string IpcGetFileInfo() {
  return FromHex("00 00 00 60 1a 08 02 10 00 18 00 22 10") + IpcClientId() + FromHex("28 00 3f 0a 0b") + "getFileInfo" + FromHex("12 2e") +
         std::string(kClientProtocol) + FromHex("18 01 04 0a 02 2f 61");
}

inline std::string Delimited(std::string_view bytes) {
  std::string out;
  size_t length = bytes.size();
  for (; length >= 0x80; length >>= 7) out.push_back(static_cast<char>((length & 0x7F) | 0x80));
  out.push_back(static_cast<char>(length));
  return out.append(bytes);
}

inline std::string IpcFrame(const std::string& body) {
  std::string frame;
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>((body.size() >> shift) & 0xFF));
  return frame + body;
}

inline hdfs::RpcRequestHeaderProto IpcHeader(int32_t id) {
  hdfs::RpcRequestHeaderProto header;
  header.set_rpckind(hdfs::RPC_PROTOCOL_BUFFER);
  header.set_rpcop(hdfs::RpcRequestHeaderProto::RPC_FINAL_PACKET);
  header.set_callid(id);
  header.set_clientid(id >= 0 ? IpcClientId() : std::string());
  header.set_retrycount(id >= 0 ? 0 : -1);
  return header;
}

// A call whose message is `request`.
inline std::string IpcCall(int32_t id, const std::string& method, const std::string& request) {
  hdfs::RequestHeaderProto called;
  called.set_methodname(method);
  called.set_declaringclassprotocolname(std::string(kClientProtocol));
  called.set_clientprotocolversion(1);
  return IpcFrame(Delimited(IpcHeader(id).SerializeAsString()) + Delimited(called.SerializeAsString()) + Delimited(request));
}

}  // namespace cairn::testing
