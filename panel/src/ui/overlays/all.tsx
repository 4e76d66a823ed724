// The overlays chunk. Only ui/overlays.ts imports it.
export { Dialog } from './dialog'
export { Menu } from './menu'
export { Picker } from './picker'
