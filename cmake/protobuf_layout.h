#pragma once

// Included before everything else where the thread sanitizer is on, by CairnOptions.cmake. Under it protobuf's maps have two more fields
// to make races on them apparent, which Debian's library, built without it, does not know: code of ours would look for a map's table where
// the library has put something else.

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
