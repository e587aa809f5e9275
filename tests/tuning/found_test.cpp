// Rows that trifactor tune found: for which machine they count, and where the library finds them.
#include <trifactor/error.hpp>
#include <tuning/rows.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace trifactor::tuning {
namespace {

namespace fs = std::filesystem;
using core::CholeskyTuning;

constexpr std::string_view hopper[] = {"sm_90", "cuda", "any"};
const std::string here = "[trifactor " TRIFACTOR_VERSION " on NVIDIA H200]\n";

Table found_table(const std::string& text) {
  Table table;
  const TextFile files[] = {{"rows.txt", text}};
  table.add(files);
  const TextFile built_in[] = {{"tuning/any.txt", "any cholesky any : nb=1\n"}};
  table.add(built_in);
  return table;
}

struct Answer {
  index_t nb;
  std::string told;  // on stderr
};
Answer ask(const Table& table, std::string_view device = "NVIDIA H200") {
  ::testing::internal::CaptureStderr();
  const index_t nb = table.find<CholeskyTuning>({hopper, device}, "f64", 100, 1, "").nb;
  return {nb, ::testing::internal::GetCapturedStderr()};
}

TEST(FoundRows, CountOnTheirDeviceWithTheirVersion) {
  const Table table = found_table("sm_90 lu any : nb=3\n" + here + "sm_90 cholesky f64 : nb=2\n");
  EXPECT_EQ(ask(table).nb, 2);
  EXPECT_EQ(ask(table).told, "");
  const auto rows = table.list();
  EXPECT_EQ(rows[0].device, "");  // before the line in brackets: for all
  EXPECT_EQ(rows[1].device, "NVIDIA H200");
  EXPECT_EQ(rows[1].version, TRIFACTOR_VERSION);
}

TEST(FoundRows, OfAnotherDeviceOrVersionAreIgnoredAloudAndOnce) {
  for (const std::string section :
       {"[trifactor 0.0.1 on NVIDIA H200]\n", "[trifactor " TRIFACTOR_VERSION " on NVIDIA H100]\n"}) {
    const Table table = found_table(section + "sm_90 cholesky f64 : nb=2\nsm_90 cholesky any : nb=3\n");
    const Answer first = ask(table), second = ask(table);
    EXPECT_EQ(first.nb, 1);
    EXPECT_EQ(second.nb, 1);
    EXPECT_EQ(second.told, "");
    EXPECT_TRUE(first.told.starts_with("trifactor: rows.txt:2: rows found with trifactor ")) << first.told;
    EXPECT_NE(first.told.find("are ignored by trifactor " TRIFACTOR_VERSION " on NVIDIA H200"), std::string::npos);
    EXPECT_EQ(std::count(first.told.begin(), first.told.end(), '\n'), 1);
  }
}

TEST(FoundRows, OfAnotherDeviceAreNoNewsWhereThisOneHasItsOwn) {
  const Table table = found_table("[trifactor " TRIFACTOR_VERSION " on NVIDIA H100]\nsm_90 cholesky f64 : nb=2\n" + here +
                               "sm_90 cholesky f64 : nb=4\n");
  EXPECT_EQ(ask(table).told, "");
  EXPECT_EQ(ask(table).nb, 4);
  EXPECT_EQ(ask(table, "NVIDIA H100").nb, 2);
}

TEST(FoundRows, OfAnotherArchitectureAreNoNewsEither) {
  const Answer answer = ask(found_table("[trifactor 0.0.1 on Xeon]\navx512 cholesky f64 : nb=2\n"));
  EXPECT_EQ(answer.told + std::to_string(answer.nb), "1");
}

TEST(FoundRows, AWrongSectionNamesTheLineAndTheRule) {
  for (const std::string wrong :
       {"[", "[]", "[trifactor]", "[trifactor 0.1.0]", "[trifactor 0.1.0 on]", "[trifactor 0.1.0 on ]",
        "[other 0.1.0 on H200]", "[trifactor 0.1.0 on H200", "[trifactor 0.1.0 on H200] # why", "[\x1b[31m]"}) {
    try {
      found_table("any lu any : nb=1\n" + wrong + "\n");
      ADD_FAILURE() << wrong;
    } catch (const InvalidArgument& e) {
      const std::string message = e.what();
      EXPECT_TRUE(message.starts_with("rows.txt:2: \"[")) << message;
      EXPECT_NE(message.find("the rule is: [trifactor VERSION on DEVICE]"), std::string::npos) << message;
      EXPECT_EQ(message.find('\x1b'), std::string::npos);
    }
  }
}

/// With a home folder of its own.
class HomeFile : public ::testing::Test {
 protected:
  HomeFile() {
    fs::create_directories(folder / "trifactor");
    ::setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  }
  ~HomeFile() override {
    fs::remove_all(folder);
    before ? ::setenv("XDG_CONFIG_HOME", before->c_str(), 1) : ::unsetenv("XDG_CONFIG_HOME");
  }
  void write(const std::string& text) { std::ofstream(file) << text; }
  Loaded load_for_variable(const char* variable) {
    ::testing::internal::CaptureStderr();
    Loaded loaded = load_for(variable);
    told = ::testing::internal::GetCapturedStderr();
    return loaded;
  }
  static index_t nb_of(const Loaded& loaded) { return loaded.table.find<CholeskyTuning>(hopper, "f64", 100, 1, "").nb; }

  const fs::path folder = fs::path(::testing::TempDir()) / ("trifactor_home_" + std::to_string(::getpid()));
  const fs::path file = folder / "trifactor" / "tuning.txt";
  const std::optional<std::string> before =
      std::getenv("XDG_CONFIG_HOME") ? std::optional<std::string>(std::getenv("XDG_CONFIG_HOME")) : std::nullopt;
  const index_t built_in = nb_of(load_for("off"));
  std::string told;
};

TEST_F(HomeFile, IsFoundByItself) {
  write("any cholesky any : nb=77\n");
  EXPECT_EQ(home_file(), file.string());
  for (const char* variable : {static_cast<const char*>(nullptr), ""}) {
    const Loaded loaded = load_for_variable(variable);
    EXPECT_EQ(nb_of(loaded), 77);
    EXPECT_EQ(loaded.file.name, file.string());
    EXPECT_EQ(loaded.file.ignored + told, "");
  }
}

TEST_F(HomeFile, IsLeftAloneWhenTheVariableSaysOffOrAnotherFile) {
  write("any cholesky any : nb=77\n");
  EXPECT_EQ(nb_of(load_for_variable("off")), built_in);
  EXPECT_EQ(load_for_variable("off").file.name, "");
  const fs::path other = folder / "other.txt";
  std::ofstream(other) << "any lu any : nb=5\n";
  const Loaded loaded = load_for_variable(other.c_str());
  EXPECT_EQ(nb_of(loaded), built_in);
  EXPECT_EQ(loaded.file.name, other.string());
}

TEST_F(HomeFile, ThatIsNotThereIsNone) {
  const Loaded loaded = load_for_variable(nullptr);
  EXPECT_EQ(loaded.file.name + told, "");
  EXPECT_EQ(nb_of(loaded), built_in);
}

TEST_F(HomeFile, ThatIsBrokenIsIgnoredAloudWithTheLine) {
  write("any cholesky any : nb=77\nany cholesky any : nb=none\n");
  const Loaded loaded = load_for_variable(nullptr);
  EXPECT_EQ(nb_of(loaded), built_in);
  EXPECT_EQ(loaded.file.name, file.string());
  EXPECT_NE(loaded.file.ignored.find("tuning.txt:2: "), std::string::npos);
  EXPECT_NE(told.find("tuning.txt:2: "), std::string::npos) << told;
  EXPECT_NE(told.find("; the file is ignored\n"), std::string::npos) << told;
  EXPECT_THROW(load_for(file.c_str()), InvalidArgument);  // who names it wants it
}

TEST_F(HomeFile, ThatIsAPipeOrAFolderIsIgnoredAloud) {
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(nb_of(load_for_variable(nullptr)), built_in);
  EXPECT_NE(told.find("is no plain file"), std::string::npos) << told;
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(nb_of(load_for_variable(nullptr)), built_in);
  EXPECT_NE(told.find("is no plain file"), std::string::npos) << told;
}

TEST_F(HomeFile, IsInConfigOfTheHomeFolderUnlessAnAbsoluteFolderIsNamed) {
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  ::setenv("HOME", "/a", 1);
  ::setenv("XDG_CONFIG_HOME", "relative", 1);
  EXPECT_EQ(home_file(), "/a/.config/trifactor/tuning.txt");
  ::unsetenv("XDG_CONFIG_HOME");
  EXPECT_EQ(home_file(), "/a/.config/trifactor/tuning.txt");
  ::unsetenv("HOME");
  EXPECT_EQ(home_file(), "");
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace trifactor::tuning
