/** The parameters of a task-style video, from the members of its body and the flags in its text. */
export interface TaskParameters {
  /** The text without flags. */
  readonly prompt: string
  /** The parameters by their member names. If a parameter has both a member and a flag, the member wins. */
  readonly given: ReadonlyMap<TaskParameter, unknown>
}

/** The parameters that have a flag, by the names of their members. */
export type TaskParameter =
  | 'resolution'
  | 'ratio'
  | 'duration'
  | 'frames'
  | 'framespersecond'
  | 'seed'
  | 'camera_fixed'
  | 'watermark'

const PARAMETER_BY_FLAG: Readonly<Record<string, TaskParameter>> = {
  resolution: 'resolution',
  rs: 'resolution',
  ratio: 'ratio',
  rt: 'ratio',
  duration: 'duration',
  dur: 'duration',
  frames: 'frames',
  framespersecond: 'framespersecond',
  fps: 'framespersecond',
  seed: 'seed',
  camerafixed: 'camera_fixed',
  cf: 'camera_fixed',
  watermark: 'watermark',
  wm: 'watermark',
}

const PARAMETERS = [...new Set(Object.values(PARAMETER_BY_FLAG))]
const FLAG = new RegExp(`(?<![^\\s])--(${Object.keys(PARAMETER_BY_FLAG).join('|')})\\s+(\\S+)`, 'gi')

/** Reads the parameters of a task-style body that its schema has accepted. */
export function taskParameters(
  body: Readonly<Record<string, unknown>>,
  texts: readonly string[],
): TaskParameters {
  const given = new Map<TaskParameter, unknown>()
  const prompt = texts
    .map((text) =>
      text.replace(FLAG, (_flag, name: string, value: string) => {
        given.set(PARAMETER_BY_FLAG[name.toLowerCase()] as TaskParameter, flagValue(value))
        return ''
      }),
    )
    .join('\n')
    .trim()
  for (const name of PARAMETERS)
    if (body[name] !== undefined && body[name] !== null) given.set(name, body[name])
  return { prompt, given }
}

function flagValue(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,10}$/.test(text) ? Number(text) : text
}

/** Escapes a text for a task-style line, so that the line reads no flags in it. */
export function withoutFlags(text: string): string {
  return text.replace(FLAG, (flag) => `—${flag.slice(2)}`)
}
