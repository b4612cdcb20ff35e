// Modules in modules, symbols of one name at different levels, references across them.
module @outer attributes {my.target = "x", gpu.container_module} {
  module @inner {
    func.func private @same()
    module {
      func.func @same() {
        return
      }
    }
  }
  func.func @same() attributes {uses = [@inner::@same, @outer]} {
    return
  }
  module @"needs quotes" {
  }
}
module {
}

// -----

module {
  "my.graph"() ({
    %0 = "my.first"(%1) : (i32) -> i32
    %1 = "my.second"(%0) : (i32) -> i32
  }) : () -> ()
}
