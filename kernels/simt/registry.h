// Derives from a kernel's function type its description, and a call that takes the arguments by address.
//
// A description is one item a parameter, separated by commas: `f4` float, `i8` int64, `u2` uint16, `b1` bool,
// `f4x4` float4, `s24` a struct of 24 bytes; behind `*` a pointer to it, `c*` a pointer to const; `v` is void.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "cuda_host.h"

namespace simt {

// A text built at compile time. Exceeding its capacity is a compile error.
struct Text {
    char letters[1024] = {};
    size_t size = 0;

    constexpr void add(const char* text) {
        while (*text != '\0') letters[size++] = *text++;
    }
    constexpr void add(size_t number) {
        if (number >= 10) add(number / 10);
        letters[size++] = static_cast<char>('0' + number % 10);
    }
};

// float4 and similar types, with only x, y (z, w), all of one type.
template <class V, int members>
constexpr bool is_vector() {
    if constexpr (requires(V v) { v.x, v.y; }) return sizeof(V) == members * sizeof(V::x);
    return false;
}

template <class T>
constexpr void add_type(Text& text) {
    using V = std::remove_cv_t<T>;
    if constexpr (std::is_void_v<V>) {
        text.add("v");
    } else if constexpr (std::is_enum_v<V>) {
        add_type<std::underlying_type_t<V>>(text);
    } else if constexpr (std::is_arithmetic_v<V>) {
        const bool is_bool = std::is_same_v<V, bool>;
        text.add(is_bool ? "b" : std::is_floating_point_v<V> ? "f" : std::is_signed_v<V> ? "i" : "u");
        text.add(sizeof(V));
    } else if constexpr (is_vector<V, 2>() || is_vector<V, 4>()) {
        add_type<decltype(V::x)>(text);
        text.add(is_vector<V, 2>() ? "x2" : "x4");
    } else {
        text.add("s");
        text.add(sizeof(V));
    }
}

template <class T>
constexpr void add_parameter(Text& text) {
    if (text.size > 0) text.add(",");
    if constexpr (std::is_pointer_v<T>) {
        using Pointee = std::remove_pointer_t<T>;
        text.add(std::is_const_v<Pointee> ? "c*" : "*");
        add_type<Pointee>(text);
    } else {
        add_type<T>(text);
    }
}

template <auto function>
struct Registered;

template <class... Parameters, void (*function)(Parameters...)>
struct Registered<function> {
    static void call(void** arguments) { unpack(arguments, std::index_sequence_for<Parameters...>{}); }

    static constexpr Text signature = [] {
        Text text;
        (add_parameter<Parameters>(text), ...);
        return text;
    }();

    // Ended by a parameter of no size.
    static constexpr Parameter parameters[sizeof...(Parameters) + 1] = {{sizeof(Parameters), alignof(Parameters)}...};

private:
    template <size_t... i>
    static void unpack([[maybe_unused]] void** arguments, std::index_sequence<i...>) {
        function(*static_cast<std::remove_cv_t<Parameters>*>(arguments[i])...);
    }
};

template <auto function>
constexpr Kernel describe(const char* name, unsigned max_threads) {
    return {name, &Registered<function>::call, Registered<function>::signature.letters,
            Registered<function>::parameters, max_threads};
}

}  // namespace simt
