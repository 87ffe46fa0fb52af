import type { ViewContext } from '../view.ts'
import { choice } from './form.ts'
import type { RowAction } from './row-actions.ts'
import { newSecret } from './secret.ts'

/** For how many seconds a former secret can stay valid. */
const OVERLAPS = [
  ['0', 'for 5 s at most'],
  ['3600', 'for an hour'],
  ['86400', 'for a day'],
  ['604800', 'for a week'],
] as const

/** A kind of record with a secret that can be replaced. */
export interface Rotated<T> {
  /** The list, such as `admin/keys`. */
  readonly path: string
  readonly secret: 'secret' | 'token'
  /** How long the former one is valid unless chosen otherwise. */
  readonly overlap: (typeof OVERLAPS)[number][0]
  /** The sentence that says what the former one is good for meanwhile. */
  readonly says: string
  nameOf(row: T): string
  rotated?(answer: T): void
}

/** Returns the dialog that replaces a secret; the new one is shown once. */
export function rotation<
  T extends { readonly id: string; readonly secret?: string; readonly token?: string },
>({ api }: ViewContext, { path, secret, overlap, says, nameOf, rotated }: Rotated<T>): RowAction<T> {
  return {
    text: 'Rotate',
    title: (row) => `Rotate the ${secret} of ${nameOf(row)}?`,
    says,
    submit: 'Rotate',
    done: `The new ${secret} is shown.`,
    fields: () => choice({ name: 'overlap', label: `The ${secret} in use now is valid` }, OVERLAPS, overlap),
    async act(row, { overlap: seconds }) {
      const body = { overlap_seconds: Number(seconds) }
      const answer = await api.send<T>('POST', `${path}/${encodeURIComponent(row.id)}/rotate`, body)
      rotated?.(answer)
      return newSecret(answer[secret] ?? '', nameOf(answer))
    },
  }
}
