"""State that stays between calls: variables, and arguments whose memory results take."""
