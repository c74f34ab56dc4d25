"""What is asked without a caller who waits: watched questions and the cells of tables share it."""
