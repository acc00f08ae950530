"""exercises: the questions of each notebook, one module ``lesson_NN`` per notebook."""
