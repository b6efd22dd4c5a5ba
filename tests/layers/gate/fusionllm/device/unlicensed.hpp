// no licence here // fault: the first line is not the SPDX licence line
#pragma once
#include "../core/right.hpp"
#define SHOUT 1           // fault: a macro outside core/config.hpp
#include <oneapi/dnnl/dnnl.hpp>  // fault: oneDNN belongs to device/cpu
#if __has_include(<x>)    // fault: __has_include: a type must not depend on what is installed
#endif
namespace {               // fault: an anonymous namespace in a header
}
