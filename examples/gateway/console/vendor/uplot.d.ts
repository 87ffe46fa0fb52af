// The library itself stands beside this file when the console is served: see vendored.ts of the gateway.
import uPlot from 'uplot'

export default uPlot
