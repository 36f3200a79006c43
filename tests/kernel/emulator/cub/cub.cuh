/* The two algorithms that msm_sort.cu takes from CUB, for the emulator: same calls, same results. */
#pragma once
#include <algorithm>
#include <cuda_runtime.h>
#include <vector>

namespace cub {
template <class T> struct DoubleBuffer {
    T *buffers[2];
    int selector = 0;
    DoubleBuffer(T *current, T *alternate) : buffers{current, alternate} {}
    T *Current() { return buffers[selector]; }
};
struct DeviceRadixSort {
    template <class K, class V, class N>
    static cudaError_t SortPairs(void *work, size_t &work_bytes, DoubleBuffer<K> &keys,
                                 DoubleBuffer<V> &values, N count, int begin, int end,
                                 cudaStream_t = nullptr) {
        if (!work) {
            work_bytes = 256;
            return cudaSuccess;
        }
        K mask = (K)(((uint64_t)1 << end) - ((uint64_t)1 << begin));
        std::vector<size_t> order(count);
        for (size_t i = 0; i < order.size(); i++) {
            order[i] = i;
        }
        const K *k = keys.Current();
        const V *v = values.Current();
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return (k[a] & mask) < (k[b] & mask); });
        K *k2 = keys.buffers[1 - keys.selector];
        V *v2 = values.buffers[1 - values.selector];
        for (size_t i = 0; i < order.size(); i++) {
            k2[i] = k[order[i]];
            v2[i] = v[order[i]];
        }
        keys.selector ^= 1;
        values.selector ^= 1;
        return cudaSuccess;
    }
};
struct DeviceScan {
    template <class I, class O, class N>
    static cudaError_t ExclusiveSum(void *work, size_t &work_bytes, I in, O out, N count,
                                    cudaStream_t = nullptr) {
        if (!work) {
            work_bytes = 256;
            return cudaSuccess;
        }
        typename std::remove_reference<decltype(out[0])>::type sum = 0;
        for (N i = 0; i < count; i++) {
            auto value = in[i];
            out[i] = sum;
            sum += value;
        }
        return cudaSuccess;
    }
};
} // namespace cub
