#include "client/cli/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/report.h"
#include "common/error.h"

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Format, Permissions) {
  EXPECT_EQ(PermissionText(0), "---------");
  EXPECT_EQ(PermissionText(0755), "rwxr-xr-x");
  EXPECT_EQ(PermissionText(0640), "rw-r-----");
  EXPECT_EQ(PermissionText(01777), "rwxrwxrwt");
  EXPECT_EQ(PermissionText(01776), "rwxrwxrwT");
}

TEST(Format, HumanBytesAsHdfsPrintsThem) {
  EXPECT_EQ(HumanBytes(0), "0");
  EXPECT_EQ(HumanBytes(1023), "1023");
  EXPECT_EQ(HumanBytes(1024), "1 K");
  EXPECT_EQ(HumanBytes(1536), "1.5 K");
  EXPECT_EQ(HumanBytes(128 << 20), "128 M");
  EXPECT_EQ(HumanBytes((128 << 20) + 1), "128.0 M");
  EXPECT_EQ(HumanBytes((1 << 20) - 1), "1.0 M");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16.0 E");
}

TEST(Format, Capacity) {
  EXPECT_EQ(CapacityText(0), "0 B");
  EXPECT_EQ(CapacityText(1024), "1.00 KB");
  EXPECT_EQ(CapacityText(11274289152), "10.50 GB");
  EXPECT_EQ(PercentText(0, 0), "0.00%");
  EXPECT_EQ(PercentText(1, 3), "33.33%");
}

FileStatus File() {
  FileStatus status;
  status.path = "/a/b";
  status.length_bytes = 1536;
  status.replication = 3;
  status.block_size_bytes = 128 << 20;
  status.mode = 0644;
  status.owner = "flink";
  status.group = "ops";
  status.modification_time = absl::FromUnixMillis(1'700'000'000'123);
  return status;
}

TEST(Format, ListLines) {
  FileStatus directory;
  directory.is_directory = true;
  directory.mode = 0755;
  directory.owner = "hdfs";
  directory.group = "supergroup";
  directory.modification_time = absl::FromUnixSeconds(0);
  const ListColumns columns = ColumnsFor({File(), directory}, false);
  EXPECT_EQ(ListLine(File(), "/a/b", columns, false, absl::UTCTimeZone()),
            "-rw-r--r--   3 flink ops              1536 2023-11-14 22:13 /a/b");
  EXPECT_EQ(ListLine(directory, "/a/d", columns, false, absl::UTCTimeZone()),
            "drwxr-xr-x   - hdfs  supergroup          0 1970-01-01 00:00 /a/d");
  EXPECT_EQ(ListLine(File(), "/a/b", columns, true, absl::UTCTimeZone()),
            "-rw-r--r--   3 flink ops             1.5 K 2023-11-14 22:13 /a/b");
}

TEST(Format, StatLetters) {
  EXPECT_EQ(StatText("%a %A %b %F %g %n %o %r %u %y %Y %% %q", File()),
            "644 rw-r--r-- 1536 regular file ops b 134217728 3 flink 2023-11-14 22:13:20 1700000000123 % q");
  EXPECT_EQ(StatText("100%", File()), "100%");
}

TEST(Format, CountColumns) {
  ContentSummary summary;
  summary.directories = 2;
  summary.files = 3;
  summary.length_bytes = 4096;
  const auto line = [&summary](CountColumns columns, bool human) { return CountLine(summary, "/a", columns, human); };
  EXPECT_EQ(line(CountColumns::kTotals, false), "           2            3               4096 /a");
  EXPECT_EQ(CountHeader(CountColumns::kTotals), "   DIR_COUNT   FILE_COUNT       CONTENT_SIZE PATHNAME");
  EXPECT_EQ(line(CountColumns::kQuotasAndTotals, true),
            "        none             inf            none             inf            2            3                4 K /a");
  EXPECT_EQ(CountHeader(CountColumns::kQuotasAndTotals),
            "       QUOTA       REM_QUOTA     SPACE_QUOTA REM_SPACE_QUOTA    DIR_COUNT   FILE_COUNT       CONTENT_SIZE PATHNAME");
  EXPECT_EQ(line(CountColumns::kQuotas, false), "        none             inf            none             inf /a");
  EXPECT_EQ(CountHeader(CountColumns::kQuotas), "       QUOTA       REM_QUOTA     SPACE_QUOTA REM_SPACE_QUOTA PATHNAME");
}

TEST(Format, CountShowsWhatIsLeftOfQuotas) {
  ContentSummary summary;
  summary.directories = 2;
  summary.files = 3;
  summary.charged_bytes = 3 << 20;
  summary.namespace_quota = 10;
  summary.space_quota_bytes = 4 << 20;
  EXPECT_EQ(CountLine(summary, "/a", CountColumns::kQuotas, false), "          10               5         4194304         1048576 /a");
  EXPECT_EQ(CountLine(summary, "/a", CountColumns::kQuotas, true), "          10               5             4 M             1 M /a");
  summary.namespace_quota = 4;  // Below what is used.
  summary.space_quota_bytes = 0;
  EXPECT_EQ(CountLine(summary, "/a", CountColumns::kQuotas, true), "           4              -1               0            -3 M /a");
}

TEST(Format, QuotasAreNumbersOrSizes) {
  EXPECT_EQ(ParseQuota("0", false).value(), 0);
  EXPECT_EQ(ParseQuota("12", true).value(), 12);
  EXPECT_EQ(ParseQuota("6m", true).value(), 6 << 20);
  EXPECT_EQ(ParseQuota("2K", true).value(), 2048);
  EXPECT_EQ(ParseQuota("1t", true).value(), int64_t{1} << 40);
  EXPECT_EQ(ParseQuota("7e", true).value(), int64_t{7} << 60);
  for (const char* text : {"", "-1", "m", "1x", "1kb", "1 k", "9e", "99999999999999999999"})
    EXPECT_EQ(std::string(ParseQuota(text, true).status().message()), "\"" + std::string(text) + "\" is not a valid value for a quota.");
  EXPECT_FALSE(ParseQuota("6m", false).ok());
}

TEST(Format, AlignsColumnsOnTheLeft) {
  EXPECT_THAT(AlignColumns({{"1", "3", "/a"}, {"1000", "3000", "/long"}}), ElementsAre("1     3     /a", "1000  3000  /long"));
  EXPECT_THAT(AlignColumns({}), ElementsAre());
}

TEST(Format, ErrorTexts) {
  EXPECT_EQ(ErrorText(MakeError(ErrorKind::kNotFound, "x")), "No such file or directory");
  EXPECT_EQ(ErrorText(MakeError(ErrorKind::kQuota, "the limit is 5")), "the limit is 5");
}

TEST(Report, KeepsTheOrderOfHdfsFieldsAndAddsOursBehind) {
  v1::ClusterReportResponse report;
  v1::DatanodeReport* node = report.add_datanodes();
  node->set_state(v1::LIVE);
  node->mutable_info()->mutable_transfer()->set_host("dn1");
  node->mutable_info()->mutable_transfer()->set_port(9866);
  node->set_last_walk_ms(-1);
  node->set_command_queue(7);
  v1::StorageStatistics* storage = node->add_storages();
  storage->set_capacity_bytes(1000);
  storage->set_used_bytes(100);
  storage->set_remaining_bytes(700);
  storage->set_replicas(5);
  report.add_datanodes()->set_state(v1::DEAD);
  report.set_missing_blocks(2);
  report.set_corrupt_blocks(3);
  report.set_corrupt_replicas(5);
  report.set_mis_replicated_blocks(4);
  const std::string text = ReportText(report, absl::FromUnixSeconds(0), {});
  size_t at = 0;
  for (const char* field : {"Configured Capacity: 1000 (1000 B)",
                            "Present Capacity: 800",
                            "DFS Remaining: 700",
                            "DFS Used: 100",
                            "DFS Used%: 12.50%",
                            "Replicated Blocks:",
                            "\tUnder replicated blocks: 0",
                            "\tBlocks with corrupt replicas: 3",
                            "\tMissing blocks: 2",
                            "\tMissing blocks (with replication factor 1): 0",
                            "\tBadly Distributed Blocks: 4",
                            "\tLow redundancy blocks with highest priority to recover: 0",
                            "\tPending deletion blocks: 0",
                            "Erasure Coded Block Groups:",
                            "-------------------------------------------------\n",
                            "Live datanodes (1):",
                            "Name: dn1:9866 (dn1)",
                            "Hostname: dn1",
                            "Decommission Status : Normal",
                            "Configured Capacity: 1000",
                            "DFS Used: 100",
                            "Non DFS Used: 200",
                            "DFS Remaining: 700",
                            "DFS Used%: 10.00%",
                            "DFS Remaining%: 70.00%",
                            "Configured Cache Capacity:",
                            "Cache Used:",
                            "Cache Remaining:",
                            "Cache Used%:",
                            "Cache Remaining%:",
                            "Xceivers: 0",
                            "Last contact: Thu Jan 01 00:00:00 UTC 1970",
                            "Last Block Report: Never",
                            "Num of Blocks: 5",
                            "Heartbeat interval:",
                            "Command queue: 7",
                            "Unacked report entries: 0",
                            "Pending reclaim:",
                            "Open streams: 0",
                            "Dead datanodes (1):"}) {
    const size_t found = text.find(field, at);
    ASSERT_NE(found, std::string::npos) << field << " after " << text.substr(0, at);
    at = found + 1;
  }
  EXPECT_THAT(ReportText(report, absl::FromUnixSeconds(0), {.live = true}), Not(HasSubstr("Dead datanodes")));
  EXPECT_THAT(ReportText(report, absl::FromUnixSeconds(0), {.dead = true}), Not(HasSubstr("Live datanodes")));
}

TEST(Report, ListsSlowNodesWithTheWordsOfOthers) {
  v1::ClusterReportResponse report;
  for (const char* host : {"dn1", "dn2", "dn3"}) {
    v1::DatanodeReport* node = report.add_datanodes();
    node->set_state(v1::LIVE);
    node->mutable_info()->mutable_transfer()->set_host(host);
    node->mutable_info()->mutable_transfer()->set_port(9866);
  }
  const absl::Time now = absl::UnixEpoch();
  EXPECT_THAT(ReportText(report, now, {}), Not(HasSubstr("Slow")));
  EXPECT_THAT(ReportText(report, now, {.slow = true}), HasSubstr("Slow datanodes (0):"));

  v1::DatanodeReport* slow = report.mutable_datanodes(1);
  slow->set_slow(true);
  v1::DatanodeReport::FoundSlow* found = slow->add_found_slow();
  found->set_by("dn1:9866");
  found->mutable_what()->set_latency_us(250'040);
  found->mutable_what()->set_peers_latency_us(3'000);
  *slow->add_found_slow() = *found;
  slow->mutable_found_slow(1)->set_by("dn3:9866");
  slow->mutable_found_slow(1)->mutable_what()->set_at_close(true);
  *report.mutable_datanodes(2)->add_found_slow() = *found;  // One voice is not enough.
  const std::string all = ReportText(report, now, {});
  EXPECT_THAT(all, HasSubstr("Live datanodes (3):"));
  EXPECT_THAT(all, HasSubstr("Slow: no, too few find it so\nFound slow by dn1:9866"));
  const std::string text = ReportText(report, now, {.slow = true});
  EXPECT_THAT(text, HasSubstr("Slow datanodes (1):\n\nName: dn2:9866 (dn2)\n"));
  EXPECT_THAT(text,
              HasSubstr("Slow: yes\nFound slow by dn1:9866: 250.0 ms for a packet of a block, where the median of its peers is 3.0 ms\n"
                        "Found slow by dn3:9866: 250.0 ms for the last packet of a block"));
  EXPECT_THAT(text, Not(HasSubstr("Name: dn1")));
  EXPECT_THAT(text, Not(HasSubstr("Live datanodes")));
}

}  // namespace
}  // namespace cairn::cli
