"""From loops on buffers to text: print only, decide nothing."""
