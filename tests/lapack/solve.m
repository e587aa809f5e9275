% An unmodified Octave program.
n = 150;
rand ("seed", 1);
A = rand (n) - 0.5;
S = A' * A + n * eye (n);
b = rand (n, 1);
assert (norm (A * (A \ b) - b) < 1e-8);
assert (norm (chol (S)' * chol (S) - S) < 1e-8);
assert (norm (S \ b - inv (S) * b) < 1e-8);
[~, failed] = chol (-S);
assert (failed == 1);
disp ("Octave solved");
