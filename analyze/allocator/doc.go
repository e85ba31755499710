// Package allocator states the rules of PyTorch's CUDA caching allocator as facts that other
// analyses rest on (specification section 5; c10/cuda/CUDACachingAllocator.cpp).
package allocator
