// Products that a warp group begins and waits for later. Until then their sums are poison, and what they read may still
// change: they are made when they are waited for.
#pragma once
#include <algorithm>

#include "block.h"

namespace shim {

// Number by number, because what `std::copy` makes of it is watched, as if the scheduler did it.
static void move(const volatile float *from, volatile float *to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i];
}

void fence_sums() { current().sums_fenced = true; }

static Sums &kept_of(float *sums) {
  for (Sums &kept : current().sums)
    if (kept.at == sums) return kept;
  fail("no product is under way in these registers");
  leave();
  __builtin_unreachable();
}

static bool under_way(const float *sums) {
  const auto &all = current().sums;
  return std::any_of(all.begin(), all.end(), [&](const Sums &kept) { return kept.at == sums; });
}

// Descriptors are the same for all warps of a group.
static void demand_same(const Product &product) {
  auto &all = block.begun_products[current().number / (4 * LANES)];
  const size_t number = current().products_begun++;
  if (number == all.size()) all.push_back({product.a_matrix, product.b_matrix});
  if (all[number] == std::make_pair(product.a_matrix, product.b_matrix)) return;
  fail("the warps of a group begin product %zu with different descriptors", number);
  leave();
}

void begin_product(const Product &product) {
  const AsScheduler scheduling;
  Thread &self = current();
  demand_same(product);
  if (!under_way(product.sums)) {
    if (!self.sums_fenced) {
      fail("a product begins with sums, and there was no fence since products were waited for");
      leave();
    }
    self.sums.push_back({product.sums, std::vector<float>(product.columns / 2)});
    move(product.sums, self.sums.back().values.data(), product.columns / 2);
    std::fill(product.sums, product.sums + product.columns / 2, __builtin_nanf(""));
  }
  self.products.push_back(product);
  self.products.back().group = self.product_groups;
}

void end_product_group() { ++current().product_groups; }

void wait_for_products(unsigned newest) {
  Thread &self = current();
  self.sums_fenced = false;
  if (self.product_groups > newest) self.products_over = std::max(self.products_over, self.product_groups - newest);
}

bool take_product(Product *into) {
  const AsScheduler scheduling;
  Thread &self = current();
  if (self.products.empty() || self.products.front().group >= self.products_over) return false;
  *into = self.products.front();
  into->registers = into->sums;
  into->sums = kept_of(into->sums).values.data();
  self.products.pop_front();
  return true;
}

void product_is_made(const Product &product) {
  const AsScheduler scheduling;
  Thread &self = current();
  for (const Product &other : self.products)
    if (other.sums == product.registers) return;
  const auto kept = std::find_if(self.sums.begin(), self.sums.end(),
                                 [&](const Sums &each) { return each.at == product.registers; });
  move(kept->values.data(), product.registers, kept->values.size());
  self.sums.erase(kept);
}

}  // namespace shim
