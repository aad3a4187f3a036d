#include "common/hadoop_ipc/answers.h"

#include <google/protobuf/io/coded_stream.h>

namespace cairn::ipc {
namespace {

using Header = hdfs::RpcResponseHeaderProto;

void AppendVarint(size_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>((value & 0x7F) | 0x80));
  out->push_back(static_cast<char>(value));
}

size_t VarintBytes(size_t value) { return google::protobuf::io::CodedOutputStream::VarintSize64(value); }

// `body`: null if nothing follows the header.
std::string Frame(const Header& header, const std::string* body) {
  const size_t header_bytes = header.ByteSizeLong();
  size_t total = VarintBytes(header_bytes) + header_bytes;
  if (body != nullptr) total += VarintBytes(body->size()) + body->size();
  std::string frame;
  frame.reserve(4 + total);
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>((total >> shift) & 0xFF));
  AppendVarint(header_bytes, &frame);
  header.AppendToString(&frame);
  if (body != nullptr) {
    AppendVarint(body->size(), &frame);
    frame += *body;
  }
  return frame;
}

void SetFailure(const Failure& failure, Header* header) {
  header->set_exceptionclassname(failure.exception);
  header->set_errormsg(failure.message);
  header->set_errordetail(failure.code);
}

Header NewHeader(int32_t call_id, Header::RpcStatusProto status, std::string_view client_id, int32_t retry_count) {
  Header header;
  header.set_callid(static_cast<uint32_t>(call_id));
  header.set_status(status);
  header.set_serveripcversionnum(kVersion);
  header.set_clientid(client_id.data(), client_id.size());
  header.set_retrycount(retry_count);
  return header;
}

}  // namespace

std::string EncodeAnswer(int32_t call_id, std::string_view client_id, int32_t retry_count, const Answer& answer) {
  if (const auto* body = std::get_if<std::string>(&answer)) return Frame(NewHeader(call_id, Header::SUCCESS, client_id, retry_count), body);
  Header header = NewHeader(call_id, Header::ERROR, client_id, retry_count);
  SetFailure(std::get<Failure>(answer), &header);
  return Frame(header, nullptr);
}

std::string EncodeFatal(int32_t call_id, const Failure& failure) {
  Header header = NewHeader(call_id, Header::FATAL, "", -1);
  SetFailure(failure, &header);
  return Frame(header, nullptr);
}

std::string EncodeSaslSuccess() {
  hdfs::RpcSaslProto sasl;
  sasl.set_state(hdfs::RpcSaslProto::SUCCESS);
  const std::string body = sasl.SerializeAsString();
  return Frame(NewHeader(kSaslId, Header::SUCCESS, "", -1), &body);
}

std::string HttpAnswer() {
  constexpr std::string_view kText =
      "This is the port for HDFS clients (Hadoop IPC). The pages of this NameNode are at the port of dfs.namenode.http-address.\n";
  std::string answer = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: ";
  answer += std::to_string(kText.size());
  answer += "\r\n\r\n";
  answer += kText;
  return answer;
}

}  // namespace cairn::ipc
