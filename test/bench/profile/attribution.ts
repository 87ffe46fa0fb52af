/** Attributes the samples of a CPU profile to the rooms of the repository, to packages, and to Node. */
import type { Profiler } from 'node:inspector'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(import.meta.dirname, '../../..')

type Frame = Profiler.ProfileNode['callFrame']

/** Groups of samples in which no file of the repository ran. */
const OF_NODE: ReadonlyMap<string, string> = new Map([
  ['(garbage collector)', 'garbage collector'],
  ['(program)', 'native code of Node'],
])
const IDLE = '(idle)'
/** Starting the profiler takes a second. */
const PROFILER = 'profile/on-signal.ts'

/** Microseconds of a main thread by room, the longest first. Idle time is left out. */
export function microsByRoom(profile: Profiler.Profile): Map<string, number> {
  const rooms = new Map<string, number>()
  for (const { stack, micros } of samplesOf(profile)) {
    const room = roomOf(stack)
    rooms.set(room, (rooms.get(room) ?? 0) + micros)
  }
  return new Map([...rooms].sort(([, one], [, other]) => other - one))
}

/** The samples of a profile in which something ran. A stack begins with the running function. */
export function samplesOf({
  nodes,
  samples = [],
  timeDeltas = [],
}: Profiler.Profile): { readonly stack: readonly Frame[]; readonly micros: number }[] {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const stacks = new Map<number, Frame[]>()
  const stackOf = (id: number): Frame[] => {
    const known = stacks.get(id)
    if (known) return known
    const frame = byId.get(id)?.callFrame
    const parent = parents.get(id)
    const stack = [...(frame ? [frame] : []), ...(parent === undefined ? [] : stackOf(parent))]
    stacks.set(id, stack)
    return stack
  }
  return samples
    .map((id, i) => ({
      stack: stackOf(id).filter(({ functionName }) => functionName !== '(root)'),
      micros: timeDeltas[i] ?? 0,
    }))
    .filter(
      ({ stack }) => stack[0]?.functionName !== IDLE && !stack.some(({ url }) => url.endsWith(PROFILER)),
    )
}

/**
 * Returns the room for which a sample counts: that of the deepest frame of ours. What `core` does counts for the room that
 * calls it, and what packages and Node do for the frame of ours that calls them.
 */
export function roomOf(stack: readonly Frame[]): string {
  const places = stack.map(placeOf)
  const ours = places.filter((place) => place.isOurs)
  const room = ours.find(({ name }) => !name.startsWith('core/')) ?? ours[0]
  if (room) return room.name
  const ofNode = OF_NODE.get(stack[0]?.functionName ?? '')
  const inPackage = places.find(({ name }) => name !== '')?.name
  const isLoading = stack.some(({ url }) => url.startsWith('node:internal/modules/'))
  return ofNode ?? inPackage ?? (isLoading ? 'loading of modules' : 'HTTP, sockets and timers of Node')
}

function placeOf({ url }: Frame): { readonly name: string; readonly isOurs: boolean } {
  if (!url.startsWith('file://')) return { name: '', isOurs: false }
  const path = relative(ROOT, fileURLToPath(url))
  const inPackage = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)
  if (inPackage) return { name: `package ${inPackage[1]}`, isOurs: false }
  const inLib = /^lib\/((?:middleware|core|stores|endpoints)\/[^/]+|[^/]+)/.exec(path)
  return { name: inLib?.[1] ?? path.split('/').slice(0, 2).join('/'), isOurs: true }
}
