// What is said about words and numbers that the program cannot take.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace program {

/// The known word that a misspelt one most likely stands for: the fewest letters typed wrong, left out, added or
/// exchanged with a neighbour; one that it is the beginning of counts as one letter away. Empty where none is near.
std::string closest(const std::string& word, const std::vector<std::string>& known);

/// "; did you mean solve?", or nothing.
std::string did_you_mean(const std::string& word);

/// "a", "a and b", "a, b and c"
std::string listed(const std::vector<std::string>& words);

/// Whether an option of the command was typed.
bool given(const CLI::App& command, const char* option);

/// What is wrong with the name of a file, or nothing. Options take an empty one from a shell's variable that is not
/// set.
std::string not_a_file_name(const std::string& text);

/// What is wrong with a number of bytes such as 2e9, or nothing.
std::string not_a_byte_count(const std::string& text);

/// A command line that cannot be read, in the user's words, and where its usage is told.
std::string usage_message(const CLI::App&, const CLI::Error&);

}  // namespace program
