// Tuning rows: their syntax, which one is in force, and what a wrong one says.
#include <core/batch.hpp>
#include <trifactor/error.hpp>
#include <tuning/embedded.hpp>
#include <tuning/rows.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>

#include <unistd.h>

namespace trifactor::tuning {
namespace {

using core::CholeskyTuning, core::Looking, core::LuTuning, core::SolveTuning, core::SparseTuning, core::TileForm,
    core::ValueTuning;

constexpr std::string_view h200[] = {"sm_90", "cuda", "any"};
constexpr std::string_view arm[] = {"aarch64", "host", "any"};
constexpr index_t huge = std::numeric_limits<index_t>::max();

Table table_of(const std::string& text, const std::string& name = "rows.txt") {
  Table table;
  const TextFile file{name, text};
  table.add({&file, 1});
  return table;
}

/// The nb of a Cholesky factorization in double on an H200.
index_t nb_of(const Table& table, index_t n = 100, index_t count = 1, std::string_view scalar = "f64") {
  return table.find<CholeskyTuning>(h200, scalar, n, count, "").nb;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void expect_parts(const std::string& message, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts) EXPECT_NE(message.find(part), message.npos) << "no " << part << " in: " << message;
}

TEST(TuningRows, NoRowMeansTheDefaultsOfTheStruct) {
  const Table empty, other = table_of("sm_80 cholesky any : nb=7\nany lu any : nb=8\n");
  for (const Table& table : {empty, other}) {
    const auto t = table.find<CholeskyTuning>(h200, "f64", 100, 1, "");
    EXPECT_EQ(t.nb, CholeskyTuning{}.nb);
    EXPECT_EQ(t.whole, CholeskyTuning{}.whole);
    EXPECT_EQ(t.looking, CholeskyTuning{}.looking);
  }
}

TEST(TuningRows, FirstMatchWins) {
  const Table table = table_of(
      "sm_90 cholesky f64 n<=50 : nb=1\nsm_90 cholesky f64 : nb=2\nsm_90 cholesky f64 : nb=3\n");
  EXPECT_EQ(nb_of(table, 50), 1);
  EXPECT_EQ(nb_of(table, 51), 2);
}

TEST(TuningRows, OnlyTheFirstMatchSetsFields) {
  const Table table = table_of("sm_90 cholesky f64 : leaf=5\nsm_90 cholesky f64 : nb=3\n");
  EXPECT_EQ(nb_of(table), CholeskyTuning{}.nb);
}

TEST(TuningRows, MostSpecificArchitectureComesFirstWhateverTheOrderOfLines) {
  const Table table = table_of(
      "any cholesky any : nb=4\ncuda cholesky any : nb=3\nhost cholesky any : nb=9\n"
      "sm_90 cholesky any n>=10 : nb=2\nsm_90a cholesky any n>=20 : nb=1\n");
  constexpr std::string_view chain[] = {"sm_90a", "sm_90", "cuda", "any"};
  const auto nb = [&](index_t n) { return table.find<CholeskyTuning>(chain, "f64", n, 1, "").nb; };
  EXPECT_EQ(nb(20), 1);
  EXPECT_EQ(nb(10), 2);
  EXPECT_EQ(nb(9), 3);
  EXPECT_EQ(table.find<CholeskyTuning>(arm, "f64", 20, 1, "").nb, 9);
  EXPECT_EQ(table.find<CholeskyTuning>(std::span(h200).last(1), "f64", 20, 1, "").nb, 4);
}

TEST(TuningRows, EarlierFilesComeBeforeLaterOnesForEveryArchitecture) {
  Table table;
  const TextFile first{"mine.txt", "any cholesky any n<10 : nb=1\n"};
  const TextFile second{"sm_90.txt", "sm_90 cholesky f64 : nb=2\n"};
  table.add({&first, 1});
  table.add({&second, 1});
  EXPECT_EQ(nb_of(table, 9), 1);
  EXPECT_EQ(nb_of(table, 10), 2);
}

TEST(TuningRows, AScalarMatchesItselfAndAnyMatchesAll) {
  const Table table = table_of("sm_90 cholesky c32 : nb=1\nsm_90 cholesky f64 : nb=2\nsm_90 cholesky any : nb=3\n");
  EXPECT_EQ(nb_of(table, 1, 1, "c32"), 1);
  EXPECT_EQ(nb_of(table, 1, 1, "f64"), 2);
  EXPECT_EQ(nb_of(table, 1, 1, "f32"), 3);
  EXPECT_EQ(nb_of(table, 1, 1, "c64"), 3);
}

TEST(TuningRows, EveryRelationHoldsOnTheRightSideOfItsBound) {
  struct { const char* condition; bool below, at, above; } const cases[] = {
      {"<", true, false, false}, {"<=", true, true, false}, {"=", false, true, false},
      {">=", false, true, true}, {">", false, false, true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.condition);
    const Table by_n = table_of("any cholesky any n" + std::string(c.condition) + "8 : nb=1\n");
    const Table by_count = table_of("any cholesky any count" + std::string(c.condition) + "8 : nb=1\n");
    for (const auto& [value, holds] : {std::pair<index_t, bool>{7, c.below}, {8, c.at}, {9, c.above}}) {
      EXPECT_EQ(nb_of(by_n, value, 8) == 1, holds) << value;
      EXPECT_EQ(nb_of(by_count, 8, value) == 1, holds) << value;
    }
  }
}

TEST(TuningRows, AllConditionsMustHold) {
  const Table table = table_of("any cholesky any n>4 n<=8 count>=100 : nb=1\n");
  EXPECT_EQ(nb_of(table, 5, 100), 1);
  EXPECT_NE(nb_of(table, 4, 100), 1);
  EXPECT_NE(nb_of(table, 9, 100), 1);
  EXPECT_NE(nb_of(table, 5, 99), 1);
}

TEST(TuningRows, SizesPast32BitsAreCompared) {
  const Table table = table_of("any cholesky any n>=4294967297 : nb=1\n");
  EXPECT_EQ(nb_of(table, index_t(1) << 33), 1);
  EXPECT_EQ(nb_of(table, huge), 1);
  EXPECT_NE(nb_of(table, 1), 1);
}

TEST(TuningRows, ChooseTheWayOfAFactorizationByOrderAndScalar) {
  const Table table = table_of(
      "sm_90 cholesky f64 count=1 n<=20000 : persistent=20000\n"
      "sm_90 cholesky f64 count=1 n<=30000 : nb=1024 looking=left\n"
      "sm_90 cholesky f64 count=1 : nb=2048 tile=exclusive ib=64 looking=right\n"
      "sm_90 cholesky any count=1 : persistent=100000\n");
  const auto find = [&](std::string_view scalar, index_t n) {
    return table.find<CholeskyTuning>(h200, scalar, n, 1, "");
  };
  EXPECT_EQ(find("f64", 20000).persistent, 20000);
  EXPECT_EQ(find("f64", 20001).persistent, 0);
  EXPECT_EQ(find("f64", 20001).looking, Looking::Left);
  EXPECT_EQ(find("f64", 30001).looking, Looking::Right);
  EXPECT_EQ(find("f64", 30001).tile, TileForm::Exclusive);
  EXPECT_EQ(find("f32", 30001).persistent, 100000);
}

TEST(TuningRows, EveryFieldReachesItsMember) {
  const Table table = table_of(
      "any cholesky any : whole=1 interleaved=2 nb=3 leaf=4 tile=exclusive ib=19 looking=left\nany lu any : whole=5 nb=6 leaf=7\n"
      "any solve any : nb=8 sweep_columns=21\nany value any : gpu_from=9\n"
      "any sparse any : flops_per_ns=10 nonzero_ns=11 metis_node_ns=12 metis_entry_ns=22 metis_gain=23 tree_ns=24 tiny=13 narrow=14 narrow_zeros=15 medium=16 medium_zeros=17 "
      "wide_zeros=18\n");
  const auto c = table.find<CholeskyTuning>(arm, "f32", 1, 1, "");
  EXPECT_EQ(c.whole, 1);
  EXPECT_EQ(c.interleaved, 2);
  EXPECT_EQ(c.nb, 3);
  EXPECT_EQ(c.leaf, 4);
  EXPECT_EQ(c.tile, TileForm::Exclusive);
  EXPECT_EQ(c.ib, 19);
  EXPECT_EQ(c.looking, Looking::Left);
  const auto l = table.find<LuTuning>(arm, "f32", 1, 1, "");
  EXPECT_EQ(l.whole, 5);
  EXPECT_EQ(l.nb, 6);
  EXPECT_EQ(l.leaf, 7);
  EXPECT_EQ(table.find<SolveTuning>(arm, "f32", 1, 1, "").nb, 8);
  EXPECT_EQ(table.find<SolveTuning>(arm, "f32", 1, 1, "").sweep_columns, 21);
  EXPECT_EQ(table.find<ValueTuning>(arm, "f32", 1, 1, "").gpu_from, 9);
  const auto s = table.find<SparseTuning>(arm, "f32", 1, 1, "");
  EXPECT_EQ(s.flops_per_ns, 10);
  EXPECT_EQ(s.nonzero_ns, 11);
  EXPECT_EQ(s.metis_node_ns, 12);
  EXPECT_EQ(s.metis_entry_ns, 22);
  EXPECT_EQ(s.metis_gain, 23);
  EXPECT_EQ(s.tree_ns, 24);
  EXPECT_EQ(s.tiny, 13);
  EXPECT_EQ(s.narrow, 14);
  EXPECT_EQ(s.narrow_zeros, 15);
  EXPECT_EQ(s.medium, 16);
  EXPECT_EQ(s.medium_zeros, 17);
  EXPECT_EQ(s.wide_zeros, 18);
}

TEST(TuningRows, BlanksCommentsAndCarriageReturnsDoNotMatter) {
  const Table table = table_of(
      "# a comment : nb=9\r\n\r\n   \t\n  sm_90\tcholesky  f64 n<=8:nb=1 \t looking=left# : nb=2, evidence\r\n"
      "sm_90 cholesky f64 : nb=3");
  EXPECT_EQ(nb_of(table, 8), 1);
  EXPECT_EQ(nb_of(table, 9), 3);
  const auto rows = table.list();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].text, "sm_90\tcholesky  f64 n<=8:nb=1 \t looking=left# : nb=2, evidence");
  EXPECT_EQ(rows[0].source, "rows.txt:4");
  EXPECT_EQ(rows[1].source, "rows.txt:5");
}

TEST(TuningRows, ListIsInTheOrderOfTrial) {
  Table table;
  const TextFile mine[] = {{"mine.txt", "any lu any : nb=1\nsm_90 lu any : nb=2\n"}};
  const TextFile embedded[] = {{"a.txt", "any lu any : nb=3\n"}, {"c.txt", "cuda lu f64 : nb=4\ncuda lu any : nb=5\n"},
                               {"s.txt", "sm_90 lu any : nb=6\n"}};
  table.add(mine);
  table.add(embedded);
  std::string order;
  for (const TuningRow& row : table.list()) order += row.source + ' ';
  EXPECT_EQ(order, "mine.txt:2 mine.txt:1 s.txt:1 c.txt:1 c.txt:2 a.txt:1 ");
}

TEST(TuningOverrides, ComeAfterTheRowAndLeaveItsOtherFields) {
  const Table table = table_of("any cholesky any : nb=1 leaf=2\n");
  const auto t = table.find<CholeskyTuning>(arm, "f64", 5, 1, "  looking=left nb=3\t");
  EXPECT_EQ(t.nb, 3);
  EXPECT_EQ(t.leaf, 2);
  EXPECT_EQ(t.looking, Looking::Left);
  EXPECT_EQ(table.find<CholeskyTuning>(arm, "f64", 5, 1, "nb=3 nb=4").nb, 4);
  EXPECT_EQ(table.find<CholeskyTuning>(arm, "f64", 5, 1, "").nb, 1);
}

TEST(TuningOverrides, SmallestValuesAreTaken) {
  const Table table;
  const auto t = table.find<CholeskyTuning>(arm, "f64", 5, 1, "whole=0 interleaved=0 nb=1 leaf=1");
  EXPECT_EQ(t.whole, 0);
  EXPECT_EQ(t.nb, 1);
  EXPECT_EQ(table.find<ValueTuning>(arm, "f64", 5, 1, "gpu_from=0").gpu_from, 0);
}

TEST(TuningOverrides, AWrongOneNamesTheWordTheRuleAndTheFields) {
  const Table table;
  for (const char* wrong : {"nb", "nb=", "nb=0", "nb=-1", "nb=1.5", "nb=12x", "nb=x", "nb=0x10",
                            "nb=99999999999999999999", "nb=8,leaf=4", "nb:8", "nb==8", "=8", "=", "leaf=0", "whole=-1",
                            "interleaved=-1", "looking=up", "looking=", "looking=1", "looking=Left", "block=8",
                            "NB=8"}) {
    const auto message = message_of([&] { table.find<CholeskyTuning>(arm, "f64", 5, 1, wrong); });
    expect_parts(message, {'"' + std::string(wrong) + '"', "persistent, macro_tiles, band, realign, interleaved, nb, leaf, tile, ib, looking", "cholesky"});
  }
  expect_parts(message_of([&] { table.find<CholeskyTuning>(arm, "f64", 5, 1, "leaf=4 nb=0"); }),
               {"\"nb=0\"", "nb must be a whole number from 1 to 2147483647, not \"0\""});
  expect_parts(message_of([&] { table.find<CholeskyTuning>(arm, "f64", 5, 1, "looking=up"); }),
               {"looking must be one of left, right, not \"up\""});
  expect_parts(message_of([&] { table.find<LuTuning>(arm, "f64", 5, 1, "looking=left"); }),
               {"there is no field \"looking\"", "the fields of lu are whole, interleaved, nb, leaf"});
}

TEST(TuningOverrides, EveryFieldTakesItsRangeAndNothingElse) {
  for (const Operation& operation : operations())
    for (const Field& field : operation.fields) {
      SCOPED_TRACE(std::string(operation.name) + ' ' + std::string(field.name));
      const auto setting = [&](const std::string& value) {
        return parse_setting(operation, std::string(field.name) + '=' + value, "here: ").value;
      };
      if (!field.words.empty()) continue;
      ASSERT_LT(field.min_value, field.max_value);
      ASSERT_LT(field.max_value, huge);
      EXPECT_EQ(setting(std::to_string(field.min_value)), field.min_value);
      EXPECT_EQ(setting(std::to_string(field.max_value)), field.max_value);
      const std::string range =
          "from " + std::to_string(field.min_value) + " to " + std::to_string(field.max_value) + ", not \"";
      for (const std::string& wrong :
           {std::to_string(field.min_value - 1), std::to_string(field.max_value + 1), std::to_string(huge),
            std::string("9223372036854775808"), std::string("-9223372036854775808")}) {
        expect_parts(message_of([&] { setting(wrong); }),
                     {"here: ", std::string(field.name) + " must be a whole number " + range + wrong + '"'});
        const auto row = "any " + std::string(operation.name) + " any : " + std::string(field.name) + '=' + wrong;
        expect_parts(message_of([&] { table_of(row); }), {"rows.txt:1: ", range + wrong + '"'});
      }
    }
}

TEST(TuningRows, OneMatrixCountsAsASquareOneWithAsManyEntries) {
  const auto order = [](index_t rows, index_t cols, index_t count = 1) {
    core::Items<double> A = core::one_matrix<double>(nullptr, rows, cols, rows);
    A.count = count;
    return core::tuning_order(A);
  };
  EXPECT_EQ(order(2000, 2000), 2000);
  EXPECT_EQ(order(8192, 2048), 4096);
  EXPECT_EQ(order(2048, 8192), 4096);
  EXPECT_EQ(order(8192, 2048, 2), 2048) << "a batch goes by the smaller of both";
  EXPECT_EQ(order(2048, 8192, 2), 2048);
  EXPECT_EQ(order(8192, 0), 0);
  EXPECT_EQ(order(index_t(1) << 40, 1), index_t(1) << 20);
}

TEST(TuningRows, MessagesShowHostileBytesEscapedAndCut) {
  const std::string hostile = "nb=\x1b[31m\xff\\";
  expect_parts(message_of([&] { Table().find<CholeskyTuning>(arm, "f64", 5, 1, hostile); }),
               {"\"nb=\\x1b[31m\\xff\\\\\""});
  expect_parts(message_of([&] { table_of("any cholesky any : " + hostile, "a\nfile"); }), {"a\\x0afile:1: "});
  const auto message = message_of([&] { table_of("any cholesky any : nb=" + std::string(100000, '\x01')); });
  EXPECT_LT(message.size(), 3000u);
  for (const char c : message) ASSERT_TRUE(c >= ' ' && c <= '~') << int(c);
}

TEST(TuningRows, AWrongLineNamesTheFileTheLineAndTheRule) {
  struct { const char* line; const char* rule; } const cases[] = {
      {"sm_90 cholesky f64 nb=128", "no colon"},
      {"sm_90 cholesky f64 # : nb=128", "no colon"},
      {"sm_90 cholesky : nb=128", "an architecture, an operation and a scalar"},
      {": nb=128", "an architecture, an operation and a scalar"},
      {"sm_90 qr f64 : nb=128", "the operations are cholesky, lu, solve, value, sparse"},
      {"sm_90 cholesky double : nb=128", "the scalars are f32, f64, c32, c64, any"},
      {"sm_90 cholesky f64 m<=8 : nb=128", "\"m<=8\" is no condition"},
      {"sm_90 cholesky f64 n : nb=128", "\"n\" is no condition"},
      {"sm_90 cholesky f64 n <= 8 : nb=128", "\"n\" is no condition"},
      {"sm_90 cholesky f64 n<=x : nb=128", "\"n<=x\" must compare with a whole number"},
      {"sm_90 cholesky f64 n<=-1 : nb=128", "\"n<=-1\" must compare with a whole number"},
      {"sm_90 cholesky f64 n==8 : nb=128", "\"n==8\" must compare with a whole number"},
      {"sm_90 cholesky f64 n< : nb=128", "\"n<\" must compare with a whole number"},
      {"sm_90 cholesky f64 n>9223372036854775807 : nb=128", "from 0 to 2^63 - 2"},
      {"sm_90 cholesky f64 n>4 n<5 : nb=128", "no n fits"},
      {"sm_90 cholesky f64 count<0 : nb=128", "no count fits"},
      {"sm_90 cholesky f64 :", "sets nothing"},
      {"sm_90 cholesky f64 : nb=0", "nb must be a whole number from 1 to 2147483647, not \"0\""},
      {"sm_90 solve f64 : leaf=8", "the fields of solve are sweep_columns, sweep_groups, fused, interleaved, invert, nb, halve, columns"},
      {"sm_90 cholesky f64 : nb=8 : leaf=8", "\":\""},
  };
  for (const auto& c : cases) {
    const std::string text = "# comment\n\nany lu any : nb=1\n" + std::string(c.line) + "\nany lu any : nb=2\n";
    expect_parts(message_of([&] { table_of(text, "some/file.txt"); }), {"some/file.txt:4: ", c.rule});
  }
}

class UserFile : public ::testing::Test {
 protected:
  std::string name = ::testing::TempDir() + "trifactor_rows_test_" + std::to_string(::getpid()) + ".txt";
  void write(std::string_view text) { std::ofstream(name) << text; }
  ~UserFile() override { std::remove(name.c_str()); }
};

TEST_F(UserFile, ComesBeforeTheEmbeddedRows) {
  write("any cholesky any n<10 : nb=77\nany value any : gpu_from=5\n");
  const Table table = load(name.c_str());
  EXPECT_EQ(nb_of(table, 9), 77);
  EXPECT_EQ(table.find<ValueTuning>(h200, "f64", 1, 1, "").gpu_from, 5);
  EXPECT_EQ(nb_of(table, 10), nb_of(load(nullptr), 10));
  ASSERT_EQ(table.list().size(), load(nullptr).list().size() + 2);
  EXPECT_EQ(table.list()[0].source, name + ":1");
}

TEST_F(UserFile, ThatIsEmptyAddsNothing) {
  write("");
  EXPECT_EQ(load(name.c_str()).list().size(), load(nullptr).list().size());
}

TEST_F(UserFile, ThatIsMissingOrAFolderIsNamed) {
  expect_parts(message_of([&] { load(name.c_str()); }), {"TRIFACTOR_TUNING", name, "No such file"});
  const auto folder = ::testing::TempDir();
  expect_parts(message_of([&] { load(folder.c_str()); }), {"TRIFACTOR_TUNING", folder, "Is a directory"});
}

TEST_F(UserFile, WithoutAnEndIsRefused) {
  expect_parts(message_of([&] { load("/dev/zero"); }), {"TRIFACTOR_TUNING", "/dev/zero", "larger than 1048576 bytes"});
}

TEST_F(UserFile, WithAWrongLineIsNamed) {
  write("any cholesky any : nb=8\nany cholesky any : nb=none\n");
  expect_parts(message_of([&] { load(name.c_str()); }), {name + ":2: ", "\"nb=none\""});
}

TEST_F(UserFile, IsReadFromTheEnvironmentAndThrowsAtEveryUse) {
  // In a child process, because a process reads the variable once.
  write("any cholesky any : nb=none\n");
  const auto child = [&] {
    ::setenv("TRIFACTOR_TUNING", name.c_str(), 1);
    const auto use = [] { find<CholeskyTuning>(h200, "f64", 1, 1, ""); };
    const bool both_named = message_of(use).find(name) != std::string::npos &&
                            message_of([] { tuning_rows(); }).find(name) != std::string::npos;
    write("any cholesky any : nb=77\n");
    const bool read_at_last = find<CholeskyTuning>(h200, "f64", 1, 1, "leaf=3").nb == 77;
    std::remove(name.c_str());  // _Exit runs no destructor, nor a second search for leaks
    std::_Exit(both_named && read_at_last ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

TEST(EmbeddedRows, ParseAndSayWhereTheyComeFrom) {
  const auto rows = load(nullptr).list();
  EXPECT_GT(embedded_file_count, 0);
  EXPECT_FALSE(rows.empty());
  for (const TuningRow& row : rows) {
    EXPECT_TRUE(row.source.starts_with("tuning/")) << row.source;
    EXPECT_NE(row.source.find(".txt:"), std::string::npos) << row.source;
  }
}

TEST(EmbeddedRows, EachSaysWhatItIsBasedOn) {
  for (const TuningRow& row : load(nullptr).list())
    EXPECT_NE(row.text.find('#'), std::string::npos) << row.source << ": " << row.text;
}

TEST(EmbeddedRows, NoneIsHiddenBehindAnEarlierOneWithoutConditions) {
  const Table table = load(nullptr);
  std::vector<std::string> closed;  // "architecture operation scalar" for which every call has matched already
  for (const TuningRow& listed : table.list()) {
    const Row row = parse_rows(listed.text, listed.source).front();
    const auto key = row.architecture + ' ' + std::string(row.operation->name) + ' ';
    for (const auto& scalar : {row.scalar, std::string("any")})
      EXPECT_EQ(std::count(closed.begin(), closed.end(), key + scalar), 0) << listed.source << " is never reached";
    const bool always = row.n.holds(0) && row.n.holds(huge) && row.count.holds(0) && row.count.holds(huge);
    if (always) closed.push_back(key + row.scalar);
  }
}

}  // namespace
}  // namespace trifactor::tuning
