//! On Redis: one Lua script for each transition.
