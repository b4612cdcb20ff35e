// Device code in generic form, which is how xDSL reads it.
module attributes {gpu.container_module} {
  "gpu.module"() <{sym_name = "kernels"}> ({
    "gpu.func"() <{function_type = (memref<?xf32>) -> ()}> ({
    ^bb0(%x: memref<?xf32>):
      %0 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
      %1 = "gpu.block_dim"() <{dimension = #gpu<dim x>}> : () -> index
      "gpu.barrier"() : () -> ()
      "gpu.return"() : () -> ()
    }) {gpu.kernel, sym_name = "scale", gpu.known_block_size = array<i32: 128, 1, 1>} : () -> ()
  }) : () -> ()
}
