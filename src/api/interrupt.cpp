#include <core/interruption.hpp>
#include <trifactor/interrupt.hpp>

namespace trifactor {

Interruptible::Interruptible(std::function<bool()> stop) : stop_(std::move(stop)), outer_(core::stop_question) {
  core::stop_question = stop_ ? &stop_ : nullptr;
}
Interruptible::~Interruptible() { core::stop_question = outer_; }

}  // namespace trifactor
