#pragma once

#include <string>

#include <gtest/gtest.h>

#include "namenode/store/keys.h"
#include "tests/testing/memory_store.h"

namespace cairn::namenode {

// All rows of a view, but for those that the store itself keeps.
inline cairn::testing::MemoryState RowsOf(const ReadView& view) {
  cairn::testing::MemoryState stored;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    const auto cursor = view.Scan(family, "", "");
    for (; cursor->Valid(); cursor->Next()) stored.rows(family).emplace(cursor->key(), cursor->value());
    EXPECT_TRUE(cursor->status().ok()) << cursor->status();
  }
  stored.rows(Family::kMeta).erase(std::string(kMetaEpoch));
  stored.rows(Family::kMeta).erase(std::string(kMetaAppliedIndex));
  return stored;
}

}  // namespace cairn::namenode
