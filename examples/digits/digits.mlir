// Which digit is it? A small convolutional network for images of 8x8 pixels, 0 (paper) to 16 (ink).
//
//   images    ?x8x8       as many as you like
//   conv 3x3  ?x8x8x16    zeros around the image, bias, relu
//   conv 3x3  ?x6x6x32    bias, relu
//   max pool  ?x3x3x32
//   dense     ?x64        bias, relu
//   dense     ?x10        bias, log softmax
//
// Features are the last axis, so that they lie side by side in memory: the vectors run along them.
// The weights lie beside this file, in digits.npz.

func.func @main(%images: tensor<?x8x8xui8>) -> (tensor<?xi64>, tensor<?x10xf32>) {
  %n = nd.dim %images {axis = 0} : tensor<?x8x8xui8>

  // From 0..16 to 0..1.
  %pixels = nd.cast %images : tensor<?x8x8xui8> -> tensor<?x8x8xf32>
  %sixteenth = nd.full 0.0625, sizes(%n) : tensor<?x8x8xf32>
  %scaled = nd.mul %pixels, %sixteenth : tensor<?x8x8xf32>
  %x = nd.reshape %scaled : tensor<?x8x8xf32> -> tensor<?x8x8x1xf32>

  // Strokes: 16 features of 3x3 pixels.
  %w1 = nd.constant #nd.resource<"w1", ""> : tensor<3x3x1x16xf32>
  %b1 = nd.constant #nd.resource<"b1", ""> : tensor<16xf32>
  %conv1 = nd.convolution %x, %w1 {x_layout = [0, 3, 1, 2], w_layout = [3, 2, 0, 1], y_layout = [0, 3, 1, 2], low = [1, 1], high = [1, 1]} : (tensor<?x8x8x1xf32>, tensor<3x3x1x16xf32>) -> tensor<?x8x8x16xf32>
  %bias1 = nd.broadcast %b1, sizes(%n) {dims = [3]} : tensor<16xf32> -> tensor<?x8x8x16xf32>
  %sum1 = nd.add %conv1, %bias1 : tensor<?x8x8x16xf32>
  %strokes = nd.relu %sum1 : tensor<?x8x8x16xf32>

  // Shapes: 32 features of 3x3 strokes.
  %w2 = nd.constant #nd.resource<"w2", ""> : tensor<3x3x16x32xf32>
  %b2 = nd.constant #nd.resource<"b2", ""> : tensor<32xf32>
  %conv2 = nd.convolution %strokes, %w2 {x_layout = [0, 3, 1, 2], w_layout = [3, 2, 0, 1], y_layout = [0, 3, 1, 2]} : (tensor<?x8x8x16xf32>, tensor<3x3x16x32xf32>) -> tensor<?x6x6x32xf32>
  %bias2 = nd.broadcast %b2, sizes(%n) {dims = [3]} : tensor<32xf32> -> tensor<?x6x6x32xf32>
  %sum2 = nd.add %conv2, %bias2 : tensor<?x6x6x32xf32>
  %shapes = nd.relu %sum2 : tensor<?x6x6x32xf32>

  // Where a shape is does not matter to a pixel: the best of each 2x2.
  %pooled = nd.max_pool %shapes {window = [2, 2, 1], strides = [2, 2, 1]} : tensor<?x6x6x32xf32> -> tensor<?x3x3x32xf32>
  %flat = nd.reshape %pooled : tensor<?x3x3x32xf32> -> tensor<?x288xf32>

  // Which shapes where make which digit.
  %w3 = nd.constant #nd.resource<"w3", ""> : tensor<288x64xf32>
  %b3 = nd.constant #nd.resource<"b3", ""> : tensor<64xf32>
  %dense3 = nd.matmul %flat, %w3 : (tensor<?x288xf32>, tensor<288x64xf32>) -> tensor<?x64xf32>
  %bias3 = nd.broadcast %b3, sizes(%n) {dims = [1]} : tensor<64xf32> -> tensor<?x64xf32>
  %sum3 = nd.add %dense3, %bias3 : tensor<?x64xf32>
  %parts = nd.relu %sum3 : tensor<?x64xf32>

  %w4 = nd.constant #nd.resource<"w4", ""> : tensor<64x10xf32>
  %b4 = nd.constant #nd.resource<"b4", ""> : tensor<10xf32>
  %dense4 = nd.matmul %parts, %w4 : (tensor<?x64xf32>, tensor<64x10xf32>) -> tensor<?x10xf32>
  %bias4 = nd.broadcast %b4, sizes(%n) {dims = [1]} : tensor<10xf32> -> tensor<?x10xf32>
  %scores = nd.add %dense4, %bias4 : tensor<?x10xf32>

  %log_probabilities = nd.log_softmax %scores {axis = 1} : tensor<?x10xf32>
  %digits = nd.argmax %scores {axis = 1} : tensor<?x10xf32> -> tensor<?xi64>
  func.return %digits, %log_probabilities : tensor<?xi64>, tensor<?x10xf32>
}
