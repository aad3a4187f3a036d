// Asio's own code, compiled once for everybody: all else is built with BOOST_ASIO_SEPARATE_COMPILATION.
#include <boost/asio/impl/src.hpp>
