#include <iostream>

#include "cairn/file_system.h"

int main(int argc, char** argv) {
  auto files = cairn::FileSystem::Connect(argc > 1 ? argv[1] : "cairn://localhost");
  if (!files.ok()) return std::cerr << files.status() << "\n", 1;

  auto writer = (*files)->Create("/hello");
  if (!writer.ok()) return std::cerr << writer.status() << "\n", 1;
  if (auto status = (*writer)->Append("Hello, checkpoint.\n"); !status.ok()) return std::cerr << status << "\n", 1;
  if (auto status = (*writer)->Close(); !status.ok()) return std::cerr << status << "\n", 1;  // On disk at every replica.

  char text[100];
  auto reader = (*files)->Open("/hello");
  if (!reader.ok()) return std::cerr << reader.status() << "\n", 1;
  auto count = (*reader)->Read(text);
  if (!count.ok()) return std::cerr << count.status() << "\n", 1;
  std::cout.write(text, static_cast<std::streamsize>(*count));
}
