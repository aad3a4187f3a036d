// The raw limit that `./dev bench` measures beside Cairn: the same bytes through the same number of processes over plain blocking sockets.
// Nothing per byte but receive, send, CRC32C at the ends, and write.
//
//   raw_chain write --bytes N --packet N --hops H --directory D [--no-crc] [--no-files] [--sync]
//   raw_chain read  --bytes N --packet N --directory D [--no-crc]
//
// Prints one JSON object: seconds, GiB/s, CPU seconds per GiB of the client and each node. New files, which are kept.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/crc32c.h"

namespace {

constexpr size_t kChunk = 512;

struct Arguments {
  bool write = true;
  bool crc = true;
  bool files = true;
  bool sync = false;
  uint64_t bytes = 1ull << 30;
  size_t packet = 512 << 10;
  int hops = 3;
  std::string directory = ".";
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "raw_chain: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

size_t ChecksumBytes(size_t data) { return 4 * ((data + kChunk - 1) / kChunk); }

void SendAll(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent <= 0) Die("send");
    data += sent;
    size -= static_cast<size_t>(sent);
  }
}

void ReceiveAll(int socket, char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = recv(socket, data, size, MSG_WAITALL);
    if (got <= 0) Die("recv");
    data += got;
    size -= static_cast<size_t>(got);
  }
}

void NoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int Listen(uint16_t* port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, 4) != 0) Die("listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  *port = ntohs(address.sin_port);
  return listener;
}

int Connect(uint16_t port) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) Die("connect");
  NoDelay(connection);
  return connection;
}

int Accept(int listener) {
  const int connection = accept(listener, nullptr, nullptr);
  if (connection < 0) Die("accept");
  NoDelay(connection);
  return connection;
}

std::string FileOf(const Arguments& a, int node) { return a.directory + "/raw-" + std::to_string(getppid()) + "-" + std::to_string(node); }

void CheckPacket(const char* checksums, const char* data, size_t size) {
  if (!cairn::VerifyChunkChecksums(cairn::ChecksumType::kCrc32c, kChunk, {data, size}, {checksums, ChecksumBytes(size)}).ok()) {
    errno = EIO;
    Die("checksum");
  }
}

// A packet on the wire: checksums, then data.
void RunNode(const Arguments& a, int node, int listener, uint16_t next_port) {
  const bool last = node == a.hops;
  const int upstream = Accept(listener);
  const int downstream = last ? -1 : Connect(next_port);
  const int file = a.files ? open(FileOf(a, node).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644) : -1;
  if (a.files && file < 0) Die("open " + FileOf(a, node));
  std::vector<char> buffer(ChecksumBytes(a.packet) + a.packet);
  for (uint64_t at = 0; at < a.bytes;) {
    const size_t size = std::min<uint64_t>(a.packet, a.bytes - at);
    const size_t checksums = a.crc ? ChecksumBytes(size) : 0;
    ReceiveAll(upstream, buffer.data(), checksums + size);
    if (downstream >= 0) SendAll(downstream, buffer.data(), checksums + size);
    if (last && a.crc) CheckPacket(buffer.data(), buffer.data() + checksums, size);
    for (size_t done = 0; file >= 0 && done < size;) {
      const ssize_t n = pwrite(file, buffer.data() + checksums + done, size - done, static_cast<off_t>(at + done));
      if (n <= 0) Die("write");
      done += static_cast<size_t>(n);
    }
    at += size;
  }
  if (file >= 0 && a.sync && fdatasync(file) != 0) Die("fdatasync");
  char acknowledgement = 'k';
  if (downstream >= 0) ReceiveAll(downstream, &acknowledgement, 1);
  SendAll(upstream, &acknowledgement, 1);
}

void RunWriter(const Arguments& a, uint16_t port) {
  const int connection = Connect(port);
  std::vector<char> buffer(ChecksumBytes(a.packet) + a.packet);
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<char>(i * 131 + (i >> 8));
  for (uint64_t at = 0; at < a.bytes;) {
    const size_t size = std::min<uint64_t>(a.packet, a.bytes - at);
    const size_t checksums = a.crc ? ChecksumBytes(size) : 0;
    const std::span<const char> data(buffer.data() + checksums, size);
    if (a.crc) cairn::ComputeChunkChecksums(cairn::ChecksumType::kCrc32c, kChunk, data, {buffer.data(), checksums});
    SendAll(connection, buffer.data(), checksums + size);
    at += size;
  }
  char acknowledgement = 0;
  ReceiveAll(connection, &acknowledgement, 1);
}

// Reading: the node has the file and its checksums, and sends both with sendfile.
void RunReadServer(const Arguments& a, int listener) {
  const int connection = Accept(listener);
  const int file = open(FileOf(a, 1).c_str(), O_RDONLY);
  if (file < 0) Die("open " + FileOf(a, 1));
  std::vector<char> data(a.packet);
  std::vector<char> checksums(ChecksumBytes(a.packet));
  if (pread(file, data.data(), data.size(), 0) <= 0) Die("read");
  cairn::ComputeChunkChecksums(cairn::ChecksumType::kCrc32c, kChunk, data, checksums);  // Every packet of the file is the same.
  off_t at = 0;
  while (static_cast<uint64_t>(at) < a.bytes) {
    size_t left = std::min<uint64_t>(a.packet, a.bytes - static_cast<uint64_t>(at));
    if (a.crc) SendAll(connection, checksums.data(), ChecksumBytes(left));
    while (left > 0) {
      const ssize_t sent = sendfile(connection, file, &at, left);
      if (sent <= 0) Die("sendfile");
      left -= static_cast<size_t>(sent);
    }
  }
}

void RunReader(const Arguments& a, uint16_t port) {
  const int connection = Connect(port);
  std::vector<char> buffer(ChecksumBytes(a.packet) + a.packet);
  for (uint64_t at = 0; at < a.bytes;) {
    const size_t size = std::min<uint64_t>(a.packet, a.bytes - at);
    const size_t checksums = a.crc ? ChecksumBytes(size) : 0;
    ReceiveAll(connection, buffer.data(), checksums + size);
    if (a.crc) CheckPacket(buffer.data(), buffer.data() + checksums, size);
    at += size;
  }
}

void MakeFileToRead(const Arguments& a) {
  const int file = open((a.directory + "/raw-" + std::to_string(getpid()) + "-1").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (file < 0) Die("open a file in " + a.directory);
  std::vector<char> data(a.packet);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 131 + (i >> 8));
  for (uint64_t at = 0; at < a.bytes;) {
    const size_t size = std::min<uint64_t>(a.packet, a.bytes - at);
    if (write(file, data.data(), size) != static_cast<ssize_t>(size)) Die("write");
    at += size;
  }
  close(file);
}

template <class Run>
pid_t Fork(Run run) {
  const pid_t pid = fork();
  if (pid < 0) Die("fork");
  if (pid == 0) {
    run();
    std::fflush(nullptr);
    _exit(0);
  }
  return pid;
}

double CpuOf(pid_t pid) {
  int status = 0;
  rusage usage{};
  if (wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) Die("a process failed");
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Arguments Parse(int argc, char** argv) {
  Arguments a;
  const auto usage = [] {
    std::fprintf(stderr, "usage: raw_chain write|read --bytes N --packet N --hops H --directory D [--no-crc] [--no-files] [--sync]\n");
    std::exit(255);
  };
  if (argc < 2 || (std::string(argv[1]) != "write" && std::string(argv[1]) != "read")) usage();
  a.write = std::string(argv[1]) == "write";
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--no-crc")
      a.crc = false;
    else if (flag == "--no-files")
      a.files = false;
    else if (flag == "--sync")
      a.sync = true;
    else if (i + 1 == argc)
      usage();
    else if (flag == "--bytes")
      a.bytes = std::strtoull(argv[++i], nullptr, 10);
    else if (flag == "--packet")
      a.packet = std::strtoull(argv[++i], nullptr, 10);
    else if (flag == "--hops")
      a.hops = std::atoi(argv[++i]);
    else if (flag == "--directory")
      a.directory = argv[++i];
    else
      usage();
  }
  if (a.bytes == 0 || a.packet == 0 || a.packet % kChunk != 0 || a.hops < 1 || a.hops > 16) usage();
  if (!a.write) a.hops = 1;
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = Parse(argc, argv);
  if (!a.write) MakeFileToRead(a);
  std::vector<int> listeners(static_cast<size_t>(a.hops));
  std::vector<uint16_t> ports(static_cast<size_t>(a.hops) + 1);
  for (size_t i = 0; i < listeners.size(); ++i) listeners[i] = Listen(&ports[i]);
  timespec begin{};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  std::vector<pid_t> nodes;
  for (size_t i = 0; i < listeners.size(); ++i)
    nodes.push_back(Fork([&] {
      if (a.write)
        RunNode(a, static_cast<int>(i) + 1, listeners[i], ports[i + 1]);
      else
        RunReadServer(a, listeners[i]);
    }));
  const pid_t client = Fork([&] {
    if (a.write)
      RunWriter(a, ports[0]);
    else
      RunReader(a, ports[0]);
  });
  const double gib = static_cast<double>(a.bytes) / (1ull << 30);
  const double client_cpu = CpuOf(client) / gib;
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double seconds = static_cast<double>(end.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  double total = client_cpu;
  std::string nodes_json;
  for (const pid_t node : nodes) {
    const double cpu = CpuOf(node) / gib;
    total += cpu;
    nodes_json += (nodes_json.empty() ? "" : ", ") + std::to_string(cpu);
  }
  std::printf("{\"seconds\": %.4f, \"gib_per_s\": %.4f, \"cpu_s_per_gib\": %.4f, \"client_cpu\": %.4f, \"node_cpu\": [%s]}\n", seconds,
              gib / seconds, total, client_cpu, nodes_json.c_str());
  return 0;
}
