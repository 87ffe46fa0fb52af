import type { Child } from '../element.ts'
import { clock, day } from '../format.ts'
import type { Key } from '../keys.ts'
import { field } from './form.ts'

/** Creates the fields for the settings of a key, with their current values. */
export function keyFields(key?: Key): Child {
  const number = { inputmode: 'numeric', pattern: '[0-9]*', title: 'A whole number', size: 8 }
  return [
    field({
      name: 'quota',
      label: 'Quota in US dollars',
      attributes: { value: key?.quota, inputmode: 'decimal', size: 10 },
    }),
    field({
      name: 'expires_at',
      label: 'Expires',
      attributes: { type: 'datetime-local', value: localTime(key?.expires_at) },
    }),
    field({ name: 'rpm', label: 'Requests a minute', attributes: { value: key?.limits.rpm, ...number } }),
    field({ name: 'tpm', label: 'Tokens a minute', attributes: { value: key?.limits.tpm, ...number } }),
    field({
      name: 'allow_models',
      label: 'Models',
      hint: 'Ids, * stands for anything.',
      attributes: { value: key?.allow_models?.join(' ') },
    }),
    field({
      name: 'allow_ips',
      label: 'Addresses',
      hint: 'Or blocks, such as 10.0.0.0/8.',
      attributes: { value: key?.allow_ips?.join(' ') },
    }),
  ]
}

function localTime(iso: string | null | undefined): string | null {
  if (!iso) return null
  const time = new Date(iso)
  return `${day(time)}T${clock(time)}`
}
