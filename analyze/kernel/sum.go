// Package kernel tells how much memory torch's kernels take beside their results.
package kernel

// GPU is what the kernels ask of a device.
type GPU struct{ processors, threads int64 } // multiprocessors, and threads of each at a time

// GPUs are devices that a recording may be of, the likeliest first: A100, V100, L40, RTX 4090, A10, RTX 3090, T4 and
// RTX 5090, and H100 or H200, B200, H100 PCIe and H20, which come first where a workspace is as large as on Hopper
// and later. The stacks do not tell which; the buffers that were recorded do.
func GPUs(hopper bool) []GPU {
	older := []GPU{{108, 2048}, {80, 2048}, {142, 1536}, {128, 1536}, {72, 1536}, {82, 1536}, {40, 1024}, {170, 1536}}
	newer := []GPU{{132, 2048}, {148, 2048}, {114, 2048}, {78, 2048}}
	if hopper {
		return append(newer, older...)
	}
	return append(older, newer...)
}

// SumBuffer is the size in bytes of the scratch memory with which torch sums so many rows of so many columns, as the gradient of a
// bias is made, and of its semaphores: 0 where so few are summed that each block of threads does it alone. The rules are those of
// setReduceConfig and ReduceConfig::global_memory_size in aten/src/ATen/native/cuda/Reduce.cuh, torch 2.1 to 2.15.
func (g GPU) SumBuffer(rows, columns int64) (bytes, semaphores int64) {
	const maxThreads, warp, minValues, maxValues = 512, 32, 16, 256
	if rows < 1 || columns < 1 {
		return 0, 0
	}
	vec := int64(4)
	for columns%vec != 0 {
		vec /= 2
	}
	most := maxThreads / vec
	across, down := min(pow2(columns/vec), most), min(pow2(rows), most)
	width := min(across, warp)
	height := min(down, most/width)
	width = min(across, most/height)
	if rows < height*16 && rows < maxValues {
		return 0, 0
	}
	values := up(rows, height)
	grid := up(columns/vec, width)
	target := g.processors * (g.threads / (width * height))
	if values < maxValues || grid > target {
		return 0, 0
	}
	blocks := max(min(up(target, grid), up(values, minValues)), up(values, maxValues))
	if blocks <= 1 {
		return 0, 0
	}
	const sum = 4 // bytes of a partial one, of single precision for all smaller types
	return sum * columns * blocks * width * vec, 4 * grid
}

// Unfolds reports whether what a convolution works in can be an image that torch unfolds
// (aten/src/ATen/native/cuda/ConvolutionMM2d.cu, columns; NaiveConvolutionTranspose2d.cu), by its size and that of
// the result, in bytes: both have the pixels, so that they have a large divisor in common. What cuDNN takes has
// hardly one.
func Unfolds(bytes, result int64) bool {
	const most, chance, mostOfFew = 1 << 10, 2 << 10, 1 << 14
	common := GCD(bytes, result)
	// A patch has that many values more than the result's channels have in common with them: few where a layer has one
	// channel left. What is added to a power of two has small divisors in common with anything.
	return common <= 0 || bytes/common <= most || common > chance && bytes/common <= mostOfFew
}

// GCD is the greatest common divisor of two sizes, or other numbers, of which 0 is divided by all.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func up(a, b int64) int64 { return (a + b - 1) / b }

// pow2 is the highest power of two that is not above n.
func pow2(n int64) int64 {
	p := int64(1)
	for 2*p <= n {
		p *= 2
	}
	return p
}
