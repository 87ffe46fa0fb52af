/**
 * The files of others that the console is served with, by their names below `/console`. A clone has them in
 * `node_modules`; the build copies them, so that the package needs no installation of theirs.
 */
export const VENDORED: readonly (readonly [name: string, source: string])[] = [
  ['vendor/uplot.js', 'uplot/dist/uPlot.esm.js'],
  ['vendor/uplot.css', 'uplot/dist/uPlot.min.css'],
  ['vendor/uplot.LICENSE.txt', 'uplot/LICENSE'],
]
