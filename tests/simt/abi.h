// Whether two declarations of a function have the same calls, though their types are not the same: tests/simt/driver_types.cpp.
#pragma once

#include <type_traits>

namespace abi {

// What calls have in common in both: a handle is a pointer to something that is never defined, an enumeration an integer.
template <class Ours, class Theirs>
constexpr bool is_same_type() {
    if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
        using A = std::remove_pointer_t<Ours>;
        using B = std::remove_pointer_t<Theirs>;
        if constexpr (std::is_const_v<A> != std::is_const_v<B>) return false;
        else return is_same_type<std::remove_cv_t<A>, std::remove_cv_t<B>>();
    } else if constexpr (std::is_enum_v<Ours> && std::is_enum_v<Theirs>) {
        return sizeof(Ours) == sizeof(Theirs) &&
               std::is_unsigned_v<std::underlying_type_t<Ours>> == std::is_unsigned_v<std::underlying_type_t<Theirs>>;
    } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
        return true;  // handles by their place, structs below
    } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
        return sizeof(Ours) == sizeof(Theirs) && std::is_unsigned_v<Ours> == std::is_unsigned_v<Theirs>;
    } else {
        return std::is_same_v<Ours, Theirs>;
    }
}

template <class Ours, class Theirs>
struct Same;
template <class R, class... A, class S, class... B>
struct Same<R(A...), S(B...)> {
    static constexpr bool value = [] {
        if constexpr (sizeof...(A) != sizeof...(B)) return false;
        else return is_same_type<R, S>() && (is_same_type<A, B>() && ...);
    }();
};

}  // namespace abi
