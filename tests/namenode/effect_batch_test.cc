#include "namenode/store/effect_batch.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/env/random.h"
#include "common/error.h"

namespace cairn::namenode {
namespace {

using std::string_view_literals::operator""sv;

class Recorder : public EffectVisitor {
 public:
  void Put(Family family, std::string_view key, std::string_view value) override { Note("put", family, key, value); }
  void Delete(Family family, std::string_view key) override { Note("delete", family, key, ""); }
  void DeleteRange(Family family, std::string_view begin, std::string_view end) override { Note("range", family, begin, end); }
  std::vector<std::string> seen;

 private:
  void Note(std::string_view what, Family family, std::string_view a, std::string_view b) {
    seen.push_back(std::string(what) + " " + std::string(FamilyName(family)) + " " + std::string(a) + " " + std::string(b));
  }
};

EffectBatch Sample() {
  EffectEncoder encoder(0x0102030405060708);
  encoder.DeleteRange(Family::kInode, "a", "");
  encoder.Put(Family::kInode, "key", "value");
  encoder.Delete(Family::kMeta, "gone");
  return std::move(encoder).Take();
}

TEST(EffectBatch, BytesAreTheDocumentedOnes) {
  const auto golden =
      "\x01"
      "\x01\x02\x03\x04\x05\x06\x07\x08"
      "\x00\x03\x01"
      "a"
      "\x00"
      "\x00\x01\x03"
      "key"
      "\x05"
      "value"
      "\x09\x02\x04"
      "gone"sv;
  EXPECT_EQ(Sample().bytes, golden);
}

TEST(EffectBatch, LengthsFrom128OnTakeTwoBytes) {
  EffectEncoder encoder(1);
  encoder.Put(Family::kBlock, std::string(127, 'k'), std::string(300, 'v'));
  const std::string bytes = std::move(encoder).Take().bytes;
  EXPECT_EQ(bytes.substr(9, 3), "\x03\x01\x7f"sv);
  EXPECT_EQ(bytes.substr(9 + 3 + 127, 2), "\xac\x02"sv);
}

TEST(EffectBatch, DecodesWhatWasEncodedInOrder) {
  Recorder recorder;
  const auto index = DecodeEffects(Sample().bytes, recorder);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(*index, 0x0102030405060708u);
  EXPECT_EQ(recorder.seen, (std::vector<std::string>{"range inode a ", "put inode key value", "delete meta gone "}));
}

TEST(EffectBatch, ABatchWithoutEffectsIsOne) {
  Recorder recorder;
  EXPECT_TRUE(DecodeEffects(EffectEncoder(7).Take().bytes, recorder).ok());
  EXPECT_TRUE(recorder.seen.empty());
}

TEST(EffectBatch, EveryCutInsideAnEffectIsRefused) {
  const std::string bytes = Sample().bytes;
  const std::vector<size_t> whole = {9, 14, 26, bytes.size()};  // Ends of header and effects.
  for (size_t length = 0; length <= bytes.size(); ++length) {
    Recorder recorder;
    const auto index = DecodeEffects(std::string_view(bytes).substr(0, length), recorder);
    const bool is_whole = std::find(whole.begin(), whole.end(), length) != whole.end();
    EXPECT_EQ(index.ok(), is_whole) << length;
    if (!index.ok()) {
      EXPECT_EQ(KindOf(index.status()), ErrorKind::kCorruptMetadata);
    }
  }
}

TEST(EffectBatch, NamesTheOffsetOfNonsense) {
  const std::string header = EffectEncoder(1).Take().bytes;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x02" + header.substr(1), "version 2"},
      {header + "\x0a\x01" + "\x01k\x01v", "family 10"},
      {header + "\x01\x04\x01k", "operation 4"},
      {header + std::string("\x01\x00\x01k", 4), "operation 0"},
      {header + "\x01\x02\x05"
                "key",
       "5 with 3 left"},
      {header + std::string("\x01\x02\x81\x00k", 5), "superfluous"},
      {header + "\x01\x02\xff\xff\xff\xff\xff\x01", "over 5 bytes"},
  };
  for (const auto& [bytes, expected] : cases) {
    Recorder recorder;
    const auto index = DecodeEffects(bytes, recorder);
    ASSERT_EQ(KindOf(index.status()), ErrorKind::kCorruptMetadata) << expected;
    const std::string message(index.status().message());
    EXPECT_NE(message.find("offset"), std::string::npos) << message;
    if (expected != "5 with 3 left") {
      EXPECT_NE(message.find(expected), std::string::npos) << message;
    }
  }
}

TEST(EffectBatch, WhatDecodesFromNoiseEncodesToTheSameBytes) {
  class ReEncoder : public EffectVisitor {
   public:
    void Put(Family family, std::string_view key, std::string_view value) override { encoder.Put(family, key, value); }
    void Delete(Family family, std::string_view key) override { encoder.Delete(family, key); }
    void DeleteRange(Family family, std::string_view begin, std::string_view end) override { encoder.DeleteRange(family, begin, end); }
    EffectEncoder encoder{0x0102030405060708};
  };
  Random random(4);
  size_t decoded = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = Sample().bytes;
    bytes[9 + random.Below(bytes.size() - 9)] = static_cast<char>(random.Below(random.OneIn(2) ? 8 : 256));
    ReEncoder visitor;
    if (!DecodeEffects(bytes, visitor).ok()) continue;
    ++decoded;
    EXPECT_EQ(std::move(visitor.encoder).Take().bytes, bytes);
  }
  EXPECT_GT(decoded, 1000u);
}

}  // namespace
}  // namespace cairn::namenode
