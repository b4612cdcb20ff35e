// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine sapphire-rapids | filecheck %s
//
// Bytes that are summed in i16 are packed as f32: a part is as deep as scratch for these allows.

// CHECK: for d2 by 512 {pack 0, pack 1, sum as f32}
func.func @main(%x: tensor<?x?xi8>, %w: tensor<?x?xi8>) -> tensor<?x?xi16> {
  %y = nd.dot_general %x, %w contract [0] x [1] {dtype = i16} : (tensor<?x?xi8>, tensor<?x?xi8>) -> tensor<?x?xi16>
  func.return %y : tensor<?x?xi16>
}
