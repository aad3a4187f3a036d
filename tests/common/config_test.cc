#include "common/config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/network.h"
#include "common/error.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// A directory that goes with the test.
class TempDir {
 public:
  TempDir() {
    std::string pattern = ::testing::TempDir() + "/config.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Site(const std::string& properties) { return "<?xml version=\"1.0\"?>\n<configuration>\n" + properties + "</configuration>\n"; }

std::string Property(const std::string& name, const std::string& value) {
  return "<property><name>" + name + "</name><value>" + value + "</value></property>\n";
}

TEST(ConfigKeys, AreUniqueDocumentedAndHaveDefaultsOfTheirType) {
  std::set<std::string_view> names;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.doc.empty()) << key.name;
    Config config;
    EXPECT_TRUE(config.Set(key.name, key.default_value, "default").ok()) << key.name << " = " << key.default_value;
    EXPECT_TRUE(key.type != ValueType::kDuration || !key.unit.empty()) << key.name;
    const std::string_view prefix = key.name.substr(0, key.name.find('.'));
    const bool known = prefix == "dfs" || prefix == "fs" || prefix == "hadoop" || prefix == "net" || prefix == "ipc" || prefix == "cairn";
    EXPECT_TRUE(known) << key.name;
  }
}

TEST(ConfigKeys, SampleFileIsTheTable) {
  std::ifstream file(CAIRN_SOURCE_DIR "/deploy/config/cairn.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string expected = SampleConfig();
  if (text.str() != expected) std::ofstream(::testing::TempDir() + "/cairn.yaml.expected") << expected;
  EXPECT_EQ(text.str(), expected) << "the right sample is in " << ::testing::TempDir() << "/cairn.yaml.expected";
}

TEST(ConfigKeys, SampleFileWithAllKeysSetIsReadAsTheDefaults) {
  std::string text;
  std::istringstream lines(SampleConfig());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#") && !line.starts_with("# ")) line.erase(0, 1);
    text += line + "\n";
  }
  Config config;
  const absl::Status status = config.AddYaml(text, "sample");
  ASSERT_TRUE(status.ok()) << status;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_TRUE(config.IsSet(key.name)) << key.name;
    EXPECT_EQ(config.Text(key.name), key.default_value);
  }
}

TEST(Config, DefaultsAreHdfssExceptWhereCheckpointsNeedBetter) {
  const Config config;
  EXPECT_EQ(config.GetBytes("dfs.blocksize"), 128u << 20);
  EXPECT_EQ(config.GetInt("dfs.replication"), 3);
  EXPECT_EQ(config.GetDuration("dfs.heartbeat.interval"), absl::Seconds(3));
  EXPECT_EQ(config.GetDuration("dfs.namenode.stale.datanode.interval"), absl::Seconds(15));
  EXPECT_EQ(config.GetDuration("cairn.namenode.dead-interval"), absl::Seconds(60));
  EXPECT_EQ(config.GetString("cairn.close.sync"), "data");
  EXPECT_EQ(config.GetMode("fs.permissions.umask-mode"), 022u);
  EXPECT_EQ(config.GetInt("dfs.namenode.fs-limits.max-directory-items"), 16 << 20);
  EXPECT_EQ(config.GetAddress("dfs.datanode.address")->port, 9866);
  EXPECT_EQ(config.GetAddress("cairn.datanode.advertised-address"), std::nullopt);
  EXPECT_EQ(config.OriginOf("dfs.blocksize"), "default");
}

TEST(Config, DirectoryIsWrittenOneWayOnly) {
  Config config;
  const std::string text = "/d2,/d2/,/d2/../d2,//d2//,/d2/./,/d1/x/../../d2,[SSD]file:///d2/,/,/..,a/./b/,../a/,./,a/..,../../c";
  ASSERT_TRUE(config.Set("dfs.datanode.data.dir", text, "-D").ok());
  EXPECT_THAT(config.GetDirectories("dfs.datanode.data.dir"),
              ElementsAre("/d2", "/d2", "/d2", "/d2", "/d2", "/d2", "/d2", "/", "/", "a/b", "../a", ".", ".", "../../c"));
}

TEST(Config, ReadsYaml) {
  Config config;
  const absl::Status status = config.AddYaml(
      "# ours\n"
      "dfs.blocksize: 64m\n"
      "dfs.datanode.data.dir: [/a, '[SSD]file:///b']\n"
      "cairn.log.stderr: false\n"
      "fs.permissions.umask-mode: '077'\n"
      "dfs.heartbeat.interval: 5\n",
      "x.yaml");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.GetBytes("dfs.blocksize"), 64u << 20);
  EXPECT_THAT(config.GetDirectories("dfs.datanode.data.dir"), ElementsAre("/a", "/b"));
  EXPECT_FALSE(config.GetBool("cairn.log.stderr"));
  EXPECT_EQ(config.GetMode("fs.permissions.umask-mode"), 077u);
  EXPECT_EQ(config.GetDuration("dfs.heartbeat.interval"), absl::Seconds(5));
  EXPECT_EQ(config.OriginOf("dfs.blocksize"), "x.yaml:2");
}

TEST(Config, EmptyYamlIsAllDefaults) {
  Config config;
  EXPECT_TRUE(config.AddYaml("", "x").ok());
  EXPECT_TRUE(config.AddYaml("# only a comment\n", "x").ok());
  EXPECT_FALSE(config.IsSet("dfs.blocksize"));
}

TEST(Config, YamlErrorsNameFileLineAndKey) {
  const struct {
    const char* text;
    const char* where;
    const char* what;
  } cases[] = {
      {"dfs.blocksize: 1m\ndfs.blocksiez: 64m\n", "x.yaml:2", "unknown key dfs.blocksiez"},
      {"\n\ndfs.replication: three\n", "x.yaml:3", "dfs.replication: 'three' is no number"},
      {"dfs.replication: 0\n", "x.yaml:1", "'0' is not in 1 to 512"},
      {"dfs.replication: 3.5\n", "x.yaml:1", "dfs.replication"},
      {"dfs.blocksize: 64mm\n", "x.yaml:1", "'64mm' is no size"},
      {"dfs.blocksize: 1k\n", "x.yaml:1", "'1k' is less than 1048576 bytes"},
      {"cairn.client.call.timeout: 5 fortnights\n", "x.yaml:1", "is no duration"},
      {"cairn.log.stderr: yes please\n", "x.yaml:1", "neither true nor false"},
      {"cairn.close.sync: metadata\n", "x.yaml:1", "none of none|data"},
      {"dfs.datanode.address: 9866\n", "x.yaml:1", "is no address"},
      {"fs.permissions.umask-mode: 098\n", "x.yaml:1", "no octal number"},
      {"dfs.replication: [1, 2]\n", "x.yaml:1", "not a list"},
      {"dfs:\n  replication: 3\n", "x.yaml:1", "keys are flat here"},
      {"dfs.replication: 3\n\ndfs.replication: 2\n", "x.yaml:3", "set in line 1 already"},
      {"dfs.replication: [3\n", "x.yaml:", "not YAML"},
      {"just words\n", "x.yaml:1", "KEY: VALUE"},
      {"dfs.replication:\n", "x.yaml:1", "'' is no number"},
  };
  for (const auto& c : cases) {
    Config config;
    const absl::Status status = config.AddYaml(c.text, "x.yaml");
    EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument) << c.text;
    EXPECT_THAT(Message(status), AllOf(HasSubstr(c.where), HasSubstr(c.what)));
  }
}

TEST(Config, ReadsHadoopSiteFilesAsTheyAre) {
  Config config;
  const absl::Status status =
      config.AddSiteXml(Site(Property("dfs.replication", " 2 ") + Property("dfs.namenode.stale.datanode.interval", "30000") +
                             Property("dfs.datanode.data.dir", "file:///data/1,[SSD]file:///data/2") + Property("yarn.scheduler.x", "1") +
                             Property("dfs.namenode.name.dir", "file://${base.dir}/name") + Property("base.dir", "/srv")),
                        "hdfs-site.xml");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.GetInt("dfs.replication"), 2);
  EXPECT_EQ(config.GetDuration("dfs.namenode.stale.datanode.interval"), absl::Seconds(30));  // Bare: milliseconds, as in HDFS.
  EXPECT_THAT(config.GetDirectories("dfs.datanode.data.dir"), ElementsAre("/data/1", "/data/2"));
  EXPECT_THAT(config.GetDirectories("dfs.namenode.name.dir"), ElementsAre("/srv/name"));
  EXPECT_EQ(config.ignored_count(), 2u);
  EXPECT_THAT(config.Summary(), AllOf(HasSubstr("hdfs-site.xml"), HasSubstr("2 keys of others ignored")));
}

TEST(Config, SiteFileErrorsNameFileLineAndKey) {
  const struct {
    std::string text;
    const char* where;
    const char* what;
  } cases[] = {
      {Site(Property("dfs.replication", "3") + Property("cairn.close.snyc", "data")), "h.xml:4", "unknown key cairn.close.snyc"},
      {Site(Property("dfs.replication", "many")), "h.xml:3", "'many' is no number"},
      {Site(Property("dfs.namenode.name.dir", "${nowhere}/name")), "h.xml:3", "${nowhere} is not set"},
      {Site(Property("fs.defaultFS", "${fs.defaultFS}")), "h.xml:3", "refers to itself"},
      {Site("<property><value>1</value></property>"), "h.xml:3", "without a <name>"},
      {"<configuration>\n<property>\n", "h.xml:", "not XML"},
      {"<properties/>", "h.xml:1", "<configuration> is expected"},
      {"", "h.xml:1", "not XML"},
  };
  for (const auto& c : cases) {
    Config config;
    const absl::Status status = config.AddSiteXml(c.text, "h.xml");
    EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument) << c.text;
    EXPECT_THAT(Message(status), AllOf(HasSubstr(c.where), HasSubstr(c.what)));
  }
}

TEST(Config, SearchesInOrderAndFlagsOverride) {
  const TempDir dir;
  ConfigSources sources;
  sources.system_directory = dir.path() + "/none";
  EXPECT_EQ(Config::Load(sources)->GetInt("dfs.replication"), 3);

  sources.hadoop_conf_dir = dir.path();
  dir.Write("core-site.xml", Site(Property("dfs.replication", "4") + Property("fs.defaultFS", "hdfs://a:8020")));
  dir.Write("hdfs-site.xml", Site(Property("dfs.replication", "5")));
  EXPECT_EQ(Config::Load(sources)->GetInt("dfs.replication"), 5);  // hdfs-site.xml comes later.
  EXPECT_EQ(Config::Load(sources)->GetString("fs.defaultFS"), "hdfs://a:8020");

  sources.system_directory = dir.path();
  dir.Write("cairn.yaml", "dfs.replication: 6\n");
  EXPECT_EQ(Config::Load(sources)->GetInt("dfs.replication"), 6);

  sources.cairn_conf = dir.Write("env.yaml", "dfs.replication: 7\n");
  EXPECT_EQ(Config::Load(sources)->GetInt("dfs.replication"), 7);

  sources.file = dir.Write("flag.xml", Site(Property("dfs.replication", "8")));
  EXPECT_EQ(Config::Load(sources)->GetInt("dfs.replication"), 8);

  sources.overrides = {{"dfs.replication", "9"}, {"dfs.blocksize", "1g"}};
  const absl::StatusOr<Config> config = Config::Load(sources);
  EXPECT_EQ(config->GetInt("dfs.replication"), 9);
  EXPECT_EQ(config->OriginOf("dfs.replication"), "-D");
  EXPECT_EQ(config->GetBytes("dfs.blocksize"), 1u << 30);
}

TEST(Config, NamedFileThatIsMissingIsAnError) {
  ConfigSources sources;
  sources.system_directory = "";
  sources.file = "/nowhere/cairn.yaml";
  EXPECT_THAT(Message(Config::Load(sources).status()), HasSubstr("/nowhere/cairn.yaml cannot be read"));
  sources.file = "";
  sources.cairn_conf = "/nowhere/cairn.yaml";
  EXPECT_THAT(Message(Config::Load(sources).status()), AllOf(HasSubstr("CAIRN_CONF"), HasSubstr("cannot be read")));
}

TEST(Config, UnknownFlagIsAnErrorThatNamesIt) {
  ConfigSources sources;
  sources.system_directory = "";
  sources.overrides = {{"dfs.replicaton", "3"}};
  EXPECT_THAT(Message(Config::Load(sources).status()), AllOf(HasSubstr("-D"), HasSubstr("unknown key dfs.replicaton")));
}

TEST(ConfigValues, SizesTakePowersOf1024) {
  EXPECT_EQ(*ParseBytes("0"), 0u);
  EXPECT_EQ(*ParseBytes("513"), 513u);
  EXPECT_EQ(*ParseBytes("1k"), 1024u);
  EXPECT_EQ(*ParseBytes("64M"), 64u << 20);
  EXPECT_EQ(*ParseBytes("2 GiB"), 2ull << 30);
  EXPECT_EQ(*ParseBytes("2gb"), 2ull << 30);
  EXPECT_EQ(*ParseBytes("7b"), 7u);
  EXPECT_EQ(*ParseBytes("15e"), 15ull << 60);
  for (const char* bad : {"", "m", "-1", "1.5m", "16e", "99999999999999999999", "1x", "1mm", "0x10"})
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
}

TEST(ConfigValues, DurationsTakeHadoopsUnits) {
  EXPECT_EQ(*ParseDuration("0", "s"), absl::ZeroDuration());
  EXPECT_EQ(*ParseDuration("30", "s"), absl::Seconds(30));
  EXPECT_EQ(*ParseDuration("30", "ms"), absl::Milliseconds(30));
  EXPECT_EQ(*ParseDuration("30ms", "s"), absl::Milliseconds(30));
  EXPECT_EQ(*ParseDuration("2h", "s"), absl::Hours(2));
  EXPECT_EQ(*ParseDuration("1d", "s"), absl::Hours(24));
  EXPECT_EQ(*ParseDuration("5 us", ""), absl::Microseconds(5));
  for (const char* bad : {"", "s", "-3s", "3 weeks", "99999999999999999999s"}) EXPECT_FALSE(ParseDuration(bad, "s").ok()) << bad;
  EXPECT_FALSE(ParseDuration("3", "").ok());
}

TEST(ConfigValues, AddressesHaveHostAndPort) {
  EXPECT_EQ(*ParseHostPort("nn1.example:8021"), (HostPort{"nn1.example", 8021}));
  EXPECT_EQ(*ParseHostPort("0.0.0.0:0"), (HostPort{"0.0.0.0", 0}));
  EXPECT_EQ(*ParseHostPort("[::1]:8020"), (HostPort{"::1", 8020}));
  for (const char* bad : {"", "host", ":80", "host:", "host:65536", "host:80x", "::1:80", "[]:80"})
    EXPECT_FALSE(ParseHostPort(bad).ok()) << bad;
}

TEST(ConfigDeathTest, AskingForAKeyThatIsNotInTheTableIsABug) {
  const Config config;
  EXPECT_DEATH(config.GetInt("dfs.no-such-key"), "not in the table");
  EXPECT_DEATH(config.GetInt("dfs.blocksize"), "another type");
}

}  // namespace
}  // namespace cairn
