/** Preloaded into a gateway: a signal collects the garbage and prints what is held then, in MiB. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const MEBIBYTE = 1024 * 1024

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
process.on('SIGUSR2', () => {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  console.log(`held ${Math.round(heapUsed / MEBIBYTE)} ${Math.round(external / MEBIBYTE)}`)
})
