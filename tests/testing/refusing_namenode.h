#pragma once

#include "common/api/client_namenode.h"
#include "common/error.h"

namespace cairn::testing {

// A NameNode that refuses every call: what a fake of only a few calls derives from.
class RefusingNamenode : public api::ClientNamenode {
 public:
#define CAIRN_REFUSE(Name)                                                                      \
  void Name(api::CallContext, v1::Name##Request, api::Done<v1::Name##Response> done) override { \
    done(MakeError(ErrorKind::kUnsupported, #Name));                                            \
  }
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_REFUSE)
#undef CAIRN_REFUSE
};

}  // namespace cairn::testing
