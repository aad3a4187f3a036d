#pragma once

// Full gRPC names, as the services of proto/cairn declare them.

namespace cairn::rpc {

inline constexpr char kClientNamenode[] = "/cairn.v1.ClientNamenode/";
inline constexpr char kDatanodeNamenode[] = "/cairn.v1.DatanodeNamenode/";
inline constexpr char kNamenodeAdmin[] = "/cairn.v1.NamenodeAdmin/";
inline constexpr char kDatanodeAdmin[] = "/cairn.v1.DatanodeAdmin/";
inline constexpr char kInterDatanode[] = "/cairn.v1.InterDatanode/";

}  // namespace cairn::rpc
