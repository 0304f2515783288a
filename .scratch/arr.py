import lstmsim, sys, os
sys.path.insert(0,'.')
os.environ['PATH']='/tmp/w/fit/.venv/bin:'+os.environ['PATH']
from tests.studies.test_rtl_synthesis import scenario
r=lstmsim.run_rtl(scenario(),'.scratch/arr',random_weights=0,replace=True,synth='ecp5')
print(r.to_text())
for p in r.synthesis.parts: print(p)
