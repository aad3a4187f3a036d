#include "namenode/journal/wal_scan.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/crc32c.h"
#include "common/env/random.h"
#include "common/error.h"
#include "namenode/journal/log_gap.h"
#include "tests/namenode/store_world.h"

namespace cairn::namenode {
namespace {

constexpr size_t kBlock = 32768;
constexpr size_t kSector = 512;

// Writes RocksDB's log format.
class LogBuilder {
 public:
  // Returns the offset where the record begins (its first fragment's header).
  size_t Add(std::string_view payload) {
    size_t begin = std::string::npos;
    bool first = true;
    do {
      const size_t left = kBlock - bytes.size() % kBlock;
      if (left < 7) bytes.append(left, '\0');
      if (begin == std::string::npos) begin = bytes.size();
      const size_t room = kBlock - bytes.size() % kBlock - 7;
      const std::string_view part = payload.substr(0, room);
      payload.remove_prefix(part.size());
      const bool last = payload.empty();
      AddFragment(first && last ? 1 : first ? 2 : last ? 4 : 3, part);
      first = false;
    } while (!payload.empty());
    return begin;
  }
  void AddFragment(char type, std::string_view part) {
    std::string body(1, type);
    body.append(part);
    const uint32_t crc = Crc32c({body.data(), body.size()});
    const uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8u;
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(masked >> shift));
    bytes.push_back(static_cast<char>(part.size()));
    bytes.push_back(static_cast<char>(part.size() >> 8));
    bytes.append(body);
  }
  std::string bytes;
};

std::string Payload(size_t size, uint64_t seed) {
  std::string payload = Random(seed).Bytes(size);
  for (char& c : payload)
    if (c == 0) c = 'x';  // So that no sector is zero by nature.
  return payload;
}

std::string MessageOf(const absl::StatusOr<LogScan>& scan) { return std::string(scan.status().message()); }

void ExpectWhole(const std::string& bytes, uint64_t records) {
  const auto scan = ScanLog(bytes, "log");
  ASSERT_TRUE(scan.ok()) << scan.status();
  EXPECT_EQ(scan->records, records);
  EXPECT_FALSE(scan->torn_at.has_value());
}

void ExpectTorn(const std::string& bytes, uint64_t at, uint64_t records) {
  const auto scan = ScanLog(bytes, "log");
  ASSERT_TRUE(scan.ok()) << scan.status();
  ASSERT_TRUE(scan->torn_at.has_value());
  EXPECT_EQ(*scan->torn_at, at);
  EXPECT_EQ(scan->records, records);
}

void ExpectRefused(const std::string& bytes, const std::string& what) {
  const auto scan = ScanLog(bytes, "000007.log");
  ASSERT_EQ(KindOf(scan.status()), ErrorKind::kCorruptMetadata) << what;
  EXPECT_NE(MessageOf(scan).find("000007.log: offset "), std::string::npos) << MessageOf(scan);
}

TEST(ScanLog, WholeLogsOfAllShapes) {
  ExpectWhole("", 0);
  for (const size_t size : {0u, 1u, 100u, 32760u, 32761u, 32762u, 40000u, 65536u, 200000u}) {
    LogBuilder log;
    for (uint64_t i = 0; i < 5; ++i) log.Add(Payload(size, i));
    ExpectWhole(log.bytes, 5);
  }
}

TEST(ScanLog, BlockTrailersOfEveryLengthAreSkipped) {
  for (size_t trailer = 0; trailer <= 7; ++trailer) {
    LogBuilder log;
    log.Add(Payload(kBlock - 7 - trailer, trailer));
    log.Add("next");
    ExpectWhole(log.bytes, 2);
  }
}

TEST(ScanLog, LastRecordCutAnywhereIsTornAtItsBegin) {
  for (const size_t size : {1u, 700u, 70000u}) {
    LogBuilder log;
    log.Add(Payload(900, 1));
    log.Add(Payload(33000, 2));
    const size_t begin = log.Add(Payload(size, 3));
    for (size_t length = begin + 1; length < log.bytes.size(); length += 1 + (log.bytes.size() - begin) / 200)
      ExpectTorn(log.bytes.substr(0, length), begin, 2);
    ExpectWhole(log.bytes.substr(0, begin), 2);
  }
}

TEST(ScanLog, LastRecordThatLacksAnySetOfSectorsIsTorn) {
  Random random(9);
  for (int round = 0; round < 500; ++round) {
    LogBuilder log;
    log.Add(Payload(1 + random.Below(2000), random.Next()));
    const size_t begin = log.Add(Payload(1 + random.Below(random.OneIn(4) ? 100000 : 3000), random.Next()));
    std::string bytes = log.bytes;
    size_t lost = 0;
    for (size_t sector = begin / kSector * kSector; sector < bytes.size(); sector += kSector) {
      if (!random.OneIn(3)) continue;
      const size_t from = std::max(sector, begin), to = std::min(sector + kSector, bytes.size());
      bytes.replace(from, to - from, to - from, '\0');
      ++lost;
    }
    if (lost == 0) {
      ExpectWhole(bytes, 2);
    } else {
      ExpectTorn(bytes, begin, 1);
    }
  }
}

TEST(ScanLog, ZerosBehindTheLastRecordAreCut) {
  LogBuilder log;
  log.Add(Payload(300, 1));
  const size_t end = log.bytes.size();
  ExpectTorn(log.bytes + std::string(5, '\0'), end, 1);
  ExpectTorn(log.bytes + std::string(100000, '\0'), end, 1);
}

TEST(ScanLog, AnyFlippedBitBeforeTheLastRecordIsRefused) {
  LogBuilder log;
  log.Add(Payload(1200, 1));
  log.Add(Payload(40, 2));
  const size_t begin = log.Add(Payload(40, 3));
  for (size_t at = 0; at < begin; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = log.bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      ExpectRefused(bytes, "byte " + std::to_string(at) + " bit " + std::to_string(bit));
    }
  }
}

TEST(ScanLog, AnyFlippedBitInTheLastRecordIsRefused) {
  for (const size_t size : {40u, 1200u}) {
    LogBuilder log;
    log.Add(Payload(300, 1));
    const size_t begin = log.Add(Payload(size, 2));
    for (size_t at = begin; at < log.bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bytes = log.bytes;
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
        ExpectRefused(bytes, "byte " + std::to_string(at) + " bit " + std::to_string(bit));
      }
    }
  }
}

TEST(ScanLog, MissingSectorsBeforeAWholeRecordAreRefused) {
  LogBuilder log;
  log.Add(Payload(100, 1));
  const size_t begin = log.Add(Payload(5000, 2));
  log.Add(Payload(10, 3));
  for (size_t sector = begin / kSector * kSector; sector + kSector < begin + 5000; sector += kSector) {
    std::string bytes = log.bytes;
    const size_t from = std::max(sector, begin);
    bytes.replace(from, sector + kSector - from, sector + kSector - from, '\0');
    ExpectRefused(bytes, "sector " + std::to_string(sector));
  }
}

// Several edits of a MANIFEST are written before one sync: whatever sectors of them are missing, all go from the first that is torn.
TEST(ScanLog, AGroupOfAManifestMayLackAnySetOfSectors) {
  LogBuilder log;
  log.Add(Payload(700, 1));
  std::vector<size_t> begins;
  for (const size_t size : {900u, 20u, 1300u, 30u}) begins.push_back(log.Add(Payload(size, size)));
  const size_t first = begins.front() / kSector + 1;  // The sector before holds bytes that were synced.
  const size_t sectors = (log.bytes.size() + kSector - 1) / kSector - first;
  ASSERT_LT(sectors, 8u);
  int whole_records_follow = 0;
  for (uint64_t missing = 1; missing < 1u << sectors; ++missing) {
    std::string bytes = log.bytes;
    size_t lowest = bytes.size();
    for (size_t sector = 0; sector < sectors; ++sector) {
      if ((missing >> sector & 1) == 0) continue;
      const size_t begin = (first + sector) * kSector;
      lowest = std::min(lowest, begin);
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(begin), std::min(kSector, bytes.size() - begin), '\0');
    }
    // The record that the first missing sector is a part of: no whole one before it is lost.
    size_t expected = begins.front();
    uint64_t records = 0;
    for (const size_t begin : begins) {
      if (begin > lowest) break;
      expected = begin;
      ++records;
    }
    const auto scan = ScanLog(bytes, "MANIFEST-000005", LogKind::kManifest);
    ASSERT_TRUE(scan.ok()) << scan.status() << " missing " << missing;
    ASSERT_TRUE(scan->torn_at.has_value()) << missing;
    EXPECT_EQ(*scan->torn_at, expected) << missing;
    EXPECT_EQ(scan->records, records) << missing;
    whole_records_follow += ScanLog(bytes, "000005.log").ok() ? 0 : 1;  // A write-ahead log has no groups.
  }
  EXPECT_GT(whole_records_follow, 0);
}

TEST(ScanLog, AFlippedBitInAManifestIsRefused) {
  LogBuilder log;
  for (const size_t size : {700u, 900u, 20u, 1300u, 30u}) log.Add(Payload(size, size));
  for (size_t at = 0; at < log.bytes.size(); at += 3) {
    std::string bytes = log.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    EXPECT_EQ(KindOf(ScanLog(bytes, "MANIFEST-000005", LogKind::kManifest).status()), ErrorKind::kCorruptMetadata) << at;
  }
}

TEST(ScanLog, AManifestThatLacksASectorFarBeforeItsEndIsRefused) {
  LogBuilder log;
  log.Add(Payload(3000, 1));
  for (uint64_t i = 0; i < 100; ++i) log.Add(Payload(1000, i));
  std::fill_n(log.bytes.begin() + 1024, kSector, '\0');
  EXPECT_EQ(KindOf(ScanLog(log.bytes, "MANIFEST-000005", LogKind::kManifest).status()), ErrorKind::kCorruptMetadata);
}

TEST(ScanLog, TypesOfRecycledLogsAreRefused) {
  for (char type = 5; type <= 8; ++type) {
    LogBuilder log;
    log.Add("before");
    log.AddFragment(type, "recycled");
    ExpectRefused(log.bytes, "type " + std::to_string(type));
  }
}

TEST(ScanLog, FragmentsOutOfOrderAreRefused) {
  LogBuilder orphan;
  orphan.Add("before");
  orphan.AddFragment(4, "last");
  ExpectRefused(orphan.bytes, "last without first");

  LogBuilder unfinished;
  unfinished.AddFragment(2, Payload(kBlock - 7, 1));
  unfinished.AddFragment(1, "full");
  ExpectRefused(unfinished.bytes, "full inside an unfinished record");
}

TEST(ScanLog, BytesInABlockTrailerAreRefused) {
  LogBuilder log;
  log.Add(Payload(kBlock - 7 - 4, 1));
  log.Add("next");
  log.bytes[kBlock - 2] = 1;
  ExpectRefused(log.bytes, "trailer");
}

TEST(ScanLog, NoiseEndsInAnAnswer) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = random.Bytes(random.Below(3000));
    for (char& c : bytes)
      if (random.OneIn(2)) c = static_cast<char>(random.Below(5));
    const auto scan = ScanLog(bytes, "noise");
    if (!scan.ok()) {
      EXPECT_EQ(KindOf(scan.status()), ErrorKind::kCorruptMetadata);
    }
  }
}

TEST(ForEachRecord, GivesTheBeginningsOfAllUpToTheFirstThatIsNotWhole) {
  LogBuilder log;
  const std::string long_one = Payload(2 * kBlock, 7);
  log.Add("short");
  log.Add(Payload(kBlock - 12 - 7 - 7 - 3, 1));  // The next one begins with a fragment of 3 bytes.
  log.Add(long_one);
  const size_t damaged = log.Add("damaged");
  log.Add("after");
  log.bytes[damaged + 8] ^= 1;
  std::vector<std::string> beginnings;
  ForEachRecord(log.bytes, 12, [&](std::string_view record) { beginnings.emplace_back(record); });
  ASSERT_EQ(beginnings.size(), 3u);
  EXPECT_EQ(beginnings[0], "short");
  EXPECT_EQ(beginnings[1].size(), 12u);
  EXPECT_EQ(beginnings[2], long_one.substr(0, 12));
}

// Edits and batches as RocksDB writes them, as far as they are looked at.
class LogGap : public ::testing::Test {
 protected:
  static std::string Number(uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
    return out;
  }
  static std::string Varint(uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
    return out;
  }
  // Database id, comparator, log number, next file, least log, last sequence, then a new file that is not looked into.
  static std::string Edit(uint64_t last_sequence) {
    return Varint((1 << 13) + 1) + Varint(4) + "uuid" + Varint(1) + Varint(5) + "bytes" + Varint(2) + Varint(300) + Varint(3) +
           Varint(70'000) + Varint(10) + Varint(4) + Varint(4) + Varint(last_sequence) + Varint(103) + "\xff\xff\xff";
  }
  static std::string Batch(uint64_t sequence, uint32_t count) { return Number(sequence, 8) + Number(count, 4) + "rows"; }
  static std::string LogOf(const std::vector<std::string>& records) {
    LogBuilder log;
    for (const std::string& record : records) log.Add(record);
    return log.bytes;
  }
};

TEST_F(LogGap, LogsThatGoOnWhereTablesEndAreWhole) {
  const std::string manifest = LogOf({Edit(0), Edit(100), Edit(90)});
  EXPECT_TRUE(CheckNothingIsMissing(manifest, {}).ok());
  EXPECT_TRUE(CheckNothingIsMissing(manifest, {{"1.log", LogOf({Batch(101, 5), Batch(106, 1)})}, {"2.log", LogOf({Batch(107, 2)})}}).ok());
  // A log whose batches are in tables in part, or all, or that has none; and one that is not needed any more, with a gap behind it.
  EXPECT_TRUE(CheckNothingIsMissing(manifest, {{"1.log", LogOf({Batch(95, 5), Batch(100, 8)})}, {"2.log", LogOf({Batch(108, 1)})}}).ok());
  EXPECT_TRUE(CheckNothingIsMissing(manifest, {{"1.log", LogOf({Batch(7, 2)})}, {"2.log", ""}, {"3.log", LogOf({Batch(101, 1)})}}).ok());
  EXPECT_TRUE(CheckNothingIsMissing("", {{"1.log", LogOf({Batch(1, 2), Batch(3, 0), Batch(3, 1)})}}).ok());
}

TEST_F(LogGap, BatchesThatNothingHoldsAnyMoreAreMissed) {
  const std::string manifest = LogOf({Edit(0), Edit(100)});
  absl::Status missing = CheckNothingIsMissing(manifest, {{"2.log", LogOf({Batch(102, 5)})}});
  EXPECT_EQ(KindOf(missing), ErrorKind::kCorruptMetadata);
  EXPECT_NE(std::string(missing.message()).find("2.log: its changes begin with number 102"), std::string::npos) << missing;
  // Between two logs, or within one.
  missing = CheckNothingIsMissing(manifest, {{"1.log", LogOf({Batch(90, 20)})}, {"3.log", LogOf({Batch(111, 1)})}});
  EXPECT_NE(std::string(missing.message()).find("3.log"), std::string::npos) << missing;
  EXPECT_FALSE(CheckNothingIsMissing(manifest, {{"1.log", LogOf({Batch(101, 1), Batch(103, 1)})}}).ok());
  // What cannot be read names nothing.
  EXPECT_FALSE(CheckNothingIsMissing(LogOf({"\x05" + Edit(100)}), {{"1.log", LogOf({Batch(101, 1)})}}).ok());
}

class RepairTornTailsTest : public ::testing::Test {
 protected:
  RepairTornTailsTest() {
    EXPECT_TRUE(world_.files().MakeDirectories("/db").ok());
    Write("CURRENT", "MANIFEST-000005\n");
    log_.Add("first");
    last_ = log_.Add("second");
    Write("MANIFEST-000005", log_.bytes);
    Write("000004.log", log_.bytes);
    Write("000012.log", log_.bytes);
    Write("000013.sst", "not a log");
  }
  void Write(const std::string& name, const std::string& content) { EXPECT_TRUE(world_.files().WriteWhole("/db/" + name, content).ok()); }
  std::string Read(const std::string& name) { return world_.files().ReadWhole("/db/" + name).value(); }

  testing::StoreWorld world_;
  LogBuilder log_;
  size_t last_ = 0;
};

TEST_F(RepairTornTailsTest, LeavesWholeFilesAlone) {
  ASSERT_TRUE(RepairTornTails("/db", world_.files()).ok());
  EXPECT_EQ(Read("000012.log"), log_.bytes);
  EXPECT_EQ(Read("MANIFEST-000005"), log_.bytes);
}

TEST_F(RepairTornTailsTest, CutsTheNewestLogAndTheManifestDurably) {
  for (const std::string name : {"000012.log", "MANIFEST-000005"}) Write(name, log_.bytes.substr(0, log_.bytes.size() - 1));
  ASSERT_TRUE(RepairTornTails("/db", world_.files()).ok());
  world_.Kill();
  world_.LosePowerAndBoot();
  EXPECT_EQ(Read("000012.log"), log_.bytes.substr(0, last_));
  EXPECT_EQ(Read("MANIFEST-000005"), log_.bytes.substr(0, last_));
}

TEST_F(RepairTornTailsTest, RefusalChangesNothing) {
  const std::string torn = log_.bytes.substr(0, log_.bytes.size() - 1);
  Write("MANIFEST-000005", torn);
  std::string flipped = log_.bytes;
  flipped[9] ^= 1;
  Write("000012.log", flipped);
  const absl::Status status = RepairTornTails("/db", world_.files());
  EXPECT_EQ(KindOf(status), ErrorKind::kCorruptMetadata);
  EXPECT_NE(std::string(status.message()).find("/db/000012.log: offset 0"), std::string::npos) << status;
  EXPECT_EQ(Read("MANIFEST-000005"), torn);
  EXPECT_EQ(Read("000012.log"), flipped);
}

TEST_F(RepairTornTailsTest, AnOlderLogMustBeWhole) {
  Write("000004.log", log_.bytes.substr(0, log_.bytes.size() - 1));
  const absl::Status status = RepairTornTails("/db", world_.files());
  EXPECT_EQ(KindOf(status), ErrorKind::kCorruptMetadata);
  EXPECT_NE(std::string(status.message()).find("/db/000004.log: offset " + std::to_string(last_)), std::string::npos) << status;
}

TEST_F(RepairTornTailsTest, LogsAreOrderedByNumberNotByName) {
  Write("1000000.log", log_.bytes.substr(0, log_.bytes.size() - 1));
  ASSERT_TRUE(RepairTornTails("/db", world_.files()).ok());
  EXPECT_EQ(Read("1000000.log"), log_.bytes.substr(0, last_));
  EXPECT_EQ(Read("000012.log"), log_.bytes);
}

TEST_F(RepairTornTailsTest, ADamagedManifestIsNamed) {
  std::string flipped = log_.bytes;
  flipped[last_ + 8] ^= 1;
  Write("MANIFEST-000005", flipped);
  const absl::Status status = RepairTornTails("/db", world_.files());
  EXPECT_EQ(KindOf(status), ErrorKind::kCorruptMetadata);
  EXPECT_NE(std::string(status.message()).find("/db/MANIFEST-000005: offset " + std::to_string(last_)), std::string::npos) << status;
}

TEST_F(RepairTornTailsTest, CurrentMustNameAManifest) {
  Write("CURRENT", "MANIFEST-../../etc/passwd\n");
  EXPECT_EQ(KindOf(RepairTornTails("/db", world_.files())), ErrorKind::kCorruptMetadata);
  Write("CURRENT", "");
  EXPECT_EQ(KindOf(RepairTornTails("/db", world_.files())), ErrorKind::kCorruptMetadata);
  ASSERT_TRUE(world_.files().Remove("/db/CURRENT").ok());
  EXPECT_EQ(KindOf(RepairTornTails("/db", world_.files())), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace cairn::namenode
