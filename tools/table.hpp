// Tables with aligned columns, for people; scripts read --json.
#pragma once

#include "standard_streams.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace program {

/// Prints its heading at once and every row when it comes, so the widths are chosen beforehand.
class Table {
 public:
  struct Column {
    std::string title;
    std::size_t width = 0;  // at least the title's
    bool left = false;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {
    for (Column& c : columns_) c.width = std::max(c.width, c.title.size());
  }

  void heading() const {
    std::vector<std::string> titles;
    for (const Column& c : columns_) titles.push_back(c.title);
    row(titles);
  }

  void row(const std::vector<std::string>& cells) const {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += "  ";
      line += columns_[i].left ? fmt::format("{:<{}}", cells[i], columns_[i].width)
                               : fmt::format("{:>{}}", cells[i], columns_[i].width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
    require_standard_output();  // rows that nobody sees are not worth their time
  }

 private:
  std::vector<Column> columns_;
};

/// A finished table. Columns are as wide as their widest cell, and aligned to the right where all cells are numbers.
inline void print_table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  std::vector<Table::Column> columns;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    Table::Column column{titles[i]};
    for (const auto& row : rows) {
      column.width = std::max(column.width, row[i].size());
      column.left = column.left || row[i].find_first_not_of("0123456789.-") != std::string::npos;
    }
    columns.push_back(column);
  }
  const Table table(std::move(columns));
  table.heading();
  for (const auto& row : rows) table.row(row);
}

}  // namespace program
